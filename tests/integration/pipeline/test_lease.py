"""One reconcile at a time, by a lease: it expires, and a pass that lost it changes nothing any more."""

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.lifecycle.lease import LEASE, Held, Lease
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.models import Lease as LeaseRow
from harbor_refresh.executions.models import Quarantine, Release
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.pipeline.reconciliation import Reconciled, reconcile
from tests.integration.concurrency import at_once, statement_held_open
from tests.integration.database_state import rows
from tests.integration.pipeline.pipeline_state import marked
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import AGES_AGO, drifted

pytestmark = pytest.mark.usefixtures("database", "redis")


def held_for(seconds: float, holder: str = "other") -> datetime:
    """Another pass has the lease for so long, by the database's clock; or had it."""
    Lease("reconcile").take()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE execution_lease SET holder = %s, held_until = clock_timestamp() + %s RETURNING held_until",
            [holder, timedelta(seconds=seconds)],
        )
        until: datetime = cursor.fetchone()[0]
    return until


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(one.levelname, one.getMessage()) for one in caplog.records]


def test_a_second_reconcile_says_which_pass_runs_and_touches_nothing(
    redis: Redis, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    drifted()
    until = held_for(20)
    before = rows(Watermark)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        outcome = reconcile()
    assert outcome == Reconciled(held=Held("other", until))
    assert (whole_redis(redis), rows(Watermark)) == ({}, before)
    assert told == [("reconciled", {"outcome": outcome})]
    assert lines(caplog) == [
        ("INFO", f"Reconcile is running already, left alone: other has the lease until {until.isoformat()}")
    ]


def test_a_lease_that_ends_later_than_possible_counts_as_expired() -> None:
    """The clock that gave it was put back. One that is no longer than two leases may be of this clock."""
    held_for(2 * LEASE.total_seconds() + 60)
    assert Lease("reconcile").take() is None
    held_for(2 * LEASE.total_seconds() - 5)
    assert Lease("reconcile").take() is not None
    held_for(-1)
    assert Lease("reconcile").take() is None


def test_if_many_passes_take_the_lease_at_once_only_one_gets_it() -> None:
    for _ in range(5):
        LeaseRow.objects.all().delete()
        mine = [Lease("reconcile") for _ in range(6)]
        taken = at_once(*(one.take for one in mine))
        assert taken.count(None) == 1
        winner = mine[taken.index(None)]
        assert LeaseRow.objects.get().holder == winner.holder
        assert {one.holder for one in taken if one} <= {winner.holder, "another"}


def test_a_pass_does_not_wait_for_a_locked_row() -> None:
    held_for(-1)
    with statement_held_open("SELECT FROM execution_lease FOR UPDATE"):
        held = Lease("reconcile").take()
    assert held is not None
    assert held.holder == "other"


def test_a_lease_is_released_after_an_error(redis_down: None) -> None:
    drifted()
    with pytest.raises(QueueUnavailable):
        reconcile()
    assert (LeaseRow.objects.get().holder, LeaseRow.objects.get().held_until) == (None, None)


def test_a_pass_keeps_its_lease_as_long_as_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page extends it, also when it had expired and no other pass took it over."""
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.reconciliation.PAGE", 1)
    for _ in range(3):
        drifted()

    def expire(_: int) -> None:
        LeaseRow.objects.update(held_until=AGES_AGO)

    outcome = reconcile(progress=expire)
    assert (outcome.looked_at, outcome.marked, outcome.lease_lost) == (3, 3, False)


def test_a_pass_that_stands_still_loses_its_lease_to_another_pass_and_changes_nothing_more(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.reconciliation.PAGE", 1)
    drifted(), drifted()
    before = dict[Any, Any]()

    def stand_still(_: int) -> None:
        LeaseRow.objects.update(held_until=AGES_AGO)
        (other,) = at_once(reconcile)
        assert (other.looked_at, other.held) == (2, None)
        redis.flushall()
        before.update(rows(Watermark))

    outcome = reconcile(progress=stand_still)
    assert (outcome.lease_lost, outcome.looked_at) == (True, 1)
    assert (marked(redis), rows(Watermark)) == (set(), before)


@pytest.mark.parametrize("write", [1, 2, 3, 4, 5])
def test_a_pass_that_lost_its_lease_changes_nothing_whichever_write_is_next(
    write: int, redis: Redis, monkeypatch: pytest.MonkeyPatch, told: list[Any]
) -> None:
    """Its writes: it lets out of quarantine, notices releases, begins a page, marks, moves the watermark."""
    drifted()
    free, released = drifted(), drifted()
    for one in (free, released):
        Quarantine.objects.create(execution=one, reason="x", attempts=1)
    reconcile()
    release([released.pk])
    Quarantine.objects.update(at=AGES_AGO)
    redis.flushall()
    count, after = 0, dict[str, Any]()
    extend = Lease.extend

    def state() -> dict[str, Any]:
        return {
            "redis": marked(redis),
            **{one.__name__: rows(one) for one in (Quarantine, Release, Watermark)},
        }

    def overtaken(lease: Lease) -> None:
        nonlocal count
        count += 1
        if count == write:
            at_once(lambda: LeaseRow.objects.update(holder="other"))
            after.update(at_once(state)[0])
        extend(lease)

    monkeypatch.setattr(Lease, "extend", overtaken)
    outcome = reconcile()
    assert (outcome.lease_lost, count) == (True, write)
    assert state() == after
