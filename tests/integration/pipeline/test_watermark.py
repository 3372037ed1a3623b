"""The watermark of reconcile passes neither a drift that is not repaired nor an open transaction."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.lifecycle import quarantines
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Quarantine, Release, Task
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.pipeline.reconciliation import look_for_drift, reconcile
from harbor_refresh.tasks.queue import execution_queue
from tests import servers
from tests.integration.concurrency import DEADLINE_SECONDS, in_background
from tests.integration.database_state import rows
from tests.integration.pipeline.pipeline_state import marked, member, watermark
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import drifted, made

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_the_watermark_waits_at_a_drift_until_it_is_repaired(
    redis: Redis,
) -> None:
    execution = drifted(minutes=60)
    changed = Task.objects.get().update_time
    for _ in range(3):
        redis.flushall()
        assert reconcile().marked == 1
        assert watermark() == changed
    refresh([execution.pk])
    assert reconcile().marked == 0
    assert watermark() > changed
    assert reconcile().looked_at == 0


def test_a_transaction_that_is_still_open_holds_the_watermark_back(database: str) -> None:
    _, tasks = made(1)
    with psycopg.connect(servers.postgres.url_for(database)) as slow:
        began = slow.execute("SELECT now()").fetchone()
        assert began is not None
        slow.execute(
            "UPDATE task SET status = 'Success', status_code = 3, update_time = now(), "
            "end_time = now() WHERE id = %s",
            tasks,
        )
        assert reconcile().drifted == 0
        assert watermark() == began[0]
        slow.commit()
    assert reconcile().marked == 1


def test_an_old_reader_holds_only_the_watermark_back(database: str, redis: Redis) -> None:
    reconcile()
    with psycopg.connect(servers.postgres.url_for(database)) as reader:
        reader.read_only = True
        began = reader.execute("SELECT now()").fetchone()
        assert began is not None
        for _ in range(3):
            execution, tasks = made(1)
            report([Report(tasks[0], "Success")])
            redis.flushall()
            outcome = reconcile()
            assert [one.execution_id for one in outcome.examples] == [execution.pk]
            assert (outcome.drifted, outcome.marked) == (1, 1)
            assert watermark() == began[0]
            refresh([execution.pk])
            redis.flushall()
    assert reconcile().drifted == 0
    assert watermark() > began[0]


def test_a_full_reconcile_reads_everything_and_moves_the_watermark_like_any_pass(redis: Redis) -> None:
    reconcile()
    before = watermark()
    execution = drifted(minutes=60 * 24 * 365)
    assert reconcile().looked_at == 0
    before = watermark()
    outcome = reconcile(full=True)
    assert [one.execution_id for one in outcome.examples] == [execution.pk]
    assert marked(redis) == {member(execution)}
    assert outcome.oldest is not None
    assert watermark() == outcome.oldest < before
    refresh([execution.pk])
    reconcile(full=True)
    assert watermark() > before


def test_with_redis_down_reconcile_says_so_and_the_watermark_does_not_move(redis: Redis, redis_down: None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harbor_refresh.tasks.strategies.current.execution_queue", execution_queue)
        reconcile()
    before = rows(Watermark)
    _, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with pytest.raises(QueueUnavailable, match="Redis"):
        reconcile()
    assert rows(Watermark) == before


@pytest.mark.parametrize("way", ["it is prepared", "track_activities is off"])
def test_a_transaction_whose_start_is_unknown_leaves_the_watermark_where_it_is(way: str, database: str) -> None:
    """Any change may still come, until it is committed."""
    reconcile()
    before = watermark()
    _, tasks = made(1)
    options = "" if way == "it is prepared" else "-c track_activities=off"
    with psycopg.connect(servers.postgres.url_for(database), autocommit=True, options=options) as slow:
        slow.execute("BEGIN")
        slow.execute(
            "UPDATE task SET status = 'Success', status_code = 3, update_time = now(), "
            "end_time = now() WHERE id = %s",
            tasks,
        )
        if not options:
            slow.execute("PREPARE TRANSACTION 'slow'")
        try:
            assert reconcile().drifted == 0
            assert watermark() == before
        finally:
            slow.execute("COMMIT" if options else "COMMIT PREPARED 'slow'")
    assert reconcile().marked == 1


@pytest.mark.parametrize("first", [True, False], ids=["the first pass", "a later pass"])
@pytest.mark.parametrize("moment", ["before", "during", "open", "after"])
def test_a_release_around_a_pass_is_found_though_its_mark_is_lost(
    moment: str, first: bool, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`open`: the release is made before the pass and commits after it."""
    execution = drifted()
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    made(1)
    if not first:
        reconcile()
        made(1)

    def release() -> None:
        assert quarantines.release([execution.pk]) == [execution.pk]
        redis.flushall()

    if moment == "before":
        release()
        reconcile()
    elif moment == "during":
        reconcile(progress=lambda _: Quarantine.objects.exists() and release())
    elif moment == "open":
        with open_release(execution.pk):
            assert reconcile().drifted == 0
    else:
        reconcile()
        release()
    redis.flushall()
    reconcile()
    assert marked(redis) == {member(execution)}
    assert rows(Release) == {}
    refresh([execution.pk])
    reconcile()
    assert reconcile().looked_at == 0


@contextmanager
def open_release(execution_id: int) -> Iterator[None]:
    """A release whose transaction is open, and commits at the end of the block."""
    made, go_on = threading.Event(), threading.Event()

    def release() -> None:
        with transaction.atomic():
            quarantines.release([execution_id])
            made.set()
            assert go_on.wait(DEADLINE_SECONDS)

    with in_background(release) as ended:
        assert made.wait(DEADLINE_SECONDS)
        yield
        go_on.set()
        ended()


def warned(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(one.levelname, one.getMessage()) for one in caplog.records if "trust" in one.getMessage()]


@pytest.mark.parametrize(
    ("change", "rescan_reason"),
    [
        (
            {"timeline": "00000000"},
            "PostgreSQL failed over or was restored (timeline 00000000, then {timeline})",
        ),
        ({"last_pass_at": timedelta(seconds=60)}, "the clock of PostgreSQL went back"),
        ({"settled_before": timedelta(seconds=60)}, "it lies in the future"),
        ({"last_pass_at": None}, "it does not say which server wrote it"),
    ],
)
def test_an_untrusted_watermark_is_ignored_once(
    change: dict[str, Any], rescan_reason: str, redis: Redis, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A server whose clock is behind took over: what changed since lies before the watermark, and what changed
    by the clock that was ahead lies in the future."""
    reconcile()
    lost = [drifted(), drifted(minutes=-60)]
    now = database_now()
    values = {name: now + one if isinstance(one, timedelta) else one for name, one in change.items()}
    timeline = Watermark.objects.get().timeline
    Watermark.objects.update(**values)
    rescan_reason = rescan_reason.format(timeline=timeline)
    told.clear()
    assert (look_for_drift(60.0).rescan_reason, told) == (rescan_reason, []), "a look is no pass"
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        outcome = reconcile()
    assert (outcome.rescan_reason, outcome.looked_at, outcome.marked) == (rescan_reason, 2, 2)
    assert marked(redis) == {member(one) for one in lost}
    assert ("watermark_untrusted", {"rescan_reason": rescan_reason}) in told
    assert warned(caplog) == [
        ("WARNING", f"Reconcile cannot trust its watermark and looks at everything: {rescan_reason}")
    ]
    assert watermark() == outcome.oldest
    row = Watermark.objects.get()
    assert (row.timeline, row.last_pass_at is not None and row.last_pass_at < database_now()) == (timeline, True)
    refresh([one.pk for one in lost])
    reconcile()
    after = reconcile()
    assert (after.rescan_reason, after.looked_at) == (None, 0)


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
