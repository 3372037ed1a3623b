"""reconcile: what drifted and waits nowhere is found and marked; what is there already is left alone."""

import logging
from typing import Any

import pytest
from django.db import connection

from harbor_refresh.executions.lifecycle.lease import Lease
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.executions.sql import text
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.pipeline.reconciliation import Reconciled, reconcile
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from tests.integration.database_state import rows
from tests.integration.pipeline.pipeline_state import marked, member, names, watermark
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import AGES_AGO, drifted, made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_reconcile_finds_what_redis_forgot_and_marks_it(redis: Redis, told: list[Any]) -> None:
    lost, healthy = drifted(), made(1)[0]
    outcome = reconcile()
    assert (outcome.looked_at, outcome.drifted, outcome.marked, outcome.waiting) == (2, 1, 1, 0)
    drift = outcome.examples[0]
    assert (drift.execution_id, drift.vendor, drift.stored, drift.true) == (
        lost.pk,
        "TEST",
        "Running",
        "Success",
    )
    assert marked(redis) == {member(lost)}
    assert names(told) == ["woken", "reconciled"]
    assert status_of(healthy) == "Running"


def test_a_drift_of_the_end_alone_is_found(redis: Redis) -> None:
    execution = drifted()
    refresh([execution.pk])
    assert reconcile(full=True).drifted == 0
    Execution.objects.update(end_time=AGES_AGO)
    assert reconcile(full=True).marked == 1


def test_a_drifted_execution_that_waits_or_is_in_flight_is_not_marked_again(redis: Redis) -> None:
    waits, flies, lost = drifted(), drifted(), drifted()
    execution_queue().mark([member(flies)])
    execution_queue().claim("me", 10)
    execution_queue().mark([member(waits)])
    outcome = reconcile()
    assert (outcome.drifted, outcome.waiting, outcome.marked) == (3, 2, 1)
    assert marked(redis) == {member(waits), member(lost)}
    assert watermark() == outcome.oldest


def test_a_scheduled_reconcile_is_postponed_while_the_queue_is_long(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.reconciliation.LONG_QUEUE", 3)
    drifted()
    execution_queue().mark(f"{number}:A" for number in range(101, 105))
    before = whole_redis(redis)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        outcome = reconcile(yielding=True)
    assert outcome == Reconciled(postponed=True)
    assert told == [("reconciled", {"outcome": outcome})]
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "Reconcile postponed: the queue is long, and its workers need the database")
    ]
    assert (whole_redis(redis), rows(Watermark)) == (before, {})
    assert reconcile().marked == 1
    redis.flushall()
    assert reconcile(yielding=True).marked == 1


def test_changes_within_the_grace_are_left_to_the_queue(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "RECONCILE_GRACE_SECONDS", 3600)
    drifted(minutes=30)
    late = drifted(minutes=90)
    outcome = reconcile()
    assert [one.execution_id for one in outcome.examples] == [late.pk]
    assert marked(redis) == {member(late)}


def test_all_pages_are_read_without_a_repeat(monkeypatch: pytest.MonkeyPatch, redis: Redis) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.reconciliation.PAGE", 3)
    lost = [drifted() for _ in range(10)]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE task SET update_time = '2020-01-01Z' WHERE id % 2 = 0")
    seen: list[int] = []
    outcome = reconcile(progress=seen.append)
    assert (outcome.looked_at, outcome.marked) == (10, 10)
    assert seen == [3, 6, 9, 10]
    assert marked(redis) == {member(one) for one in lost}
    assert reconcile(full=True).looked_at == 10


def test_a_dry_run_needs_no_lease_reports_and_changes_nothing(redis: Redis) -> None:
    assert Lease("reconcile").take() is None
    drifted()
    held = drifted()
    Quarantine.objects.create(execution=held, reason="x", attempts=1, at=AGES_AGO)
    before = (rows(Quarantine), rows(Watermark))
    outcome = reconcile(dry_run=True)
    assert (outcome.drifted, outcome.marked, outcome.released_from_quarantine) == (1, 0, 0)
    assert (rows(Quarantine), rows(Watermark)) == before
    assert whole_redis(redis) == {}


def test_a_drift_that_is_repaired_between_the_queries_of_database_and_queue_is_no_drift(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its claim was completed in between, so it is on no queue, and rightly so."""
    execution = drifted()
    execution_queue().mark([member(execution)])
    claim = execution_queue().claim("me", 10).claim
    lost = execution_queue().lost

    def completed(names: list[str]) -> list[str]:
        refresh_claim(claim)
        return lost(names)

    monkeypatch.setattr(execution_queue(), "lost", completed)
    outcome = reconcile()
    assert (outcome.drifted, outcome.marked) == (1, 0)
    assert (status_of(execution), marked(redis)) == ("Success", set())


def test_a_drift_is_found_through_its_own_tasks_although_the_table_has_no_statistics() -> None:
    """A table that was just filled has none. The index on the time of a change would be read from end to end."""
    execution = drifted()
    columns = ", ".join(field.column for field in Task._meta.concrete_fields if not field.primary_key)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO task ({columns}) SELECT {columns} FROM task, generate_series(1, 20000)")
        cursor.execute(f"EXPLAIN {text('harbor_refresh.tasks', 'find_drift')}", {"ids": [execution.pk]})
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "task_changed_lately" not in plan, plan
