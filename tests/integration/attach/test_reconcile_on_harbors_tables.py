"""Reconcile on Harbor's tables: once through the table, by times of another clock, past rows without a time."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from redis import Redis

from harbor_refresh.executions.lifecycle.quarantines import quarantine, release
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Quarantine, Release
from harbor_refresh.executions.sql import text
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.keys import HARBORS_SET
from tests.harbor.rows import T1, asked, execution, stored, task
from tests.integration.command_output import data, said

pytestmark = pytest.mark.usefixtures("attached", "redis")


def ago(**span: float) -> datetime:
    """A time as a core writes it."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(**span)


def drifted(**columns: object) -> int:
    of = execution("Running")
    task(of, "Success", **{"update_time": ago(minutes=2), **columns})
    return of


def settle() -> None:
    """A first pass, which moves the watermark."""
    reconcile()
    assert Watermark.objects.get().settled_before > datetime.now(UTC) - timedelta(minutes=3)


def marked(redis: Redis) -> set[str]:
    return {one.decode() for one in redis.smembers(HARBORS_SET)}


def test_the_first_pass_goes_by_id_through_all_executions(redis: Redis) -> None:
    ids = [drifted(update_time=at) for at in (T1, ago(days=900), ago(hours=-2), None)]
    right = execution("Success", end_time=T1)
    task(right, "Success", end_time=T1)
    outcome = reconcile()
    assert (outcome.looked_at, outcome.drifted, outcome.marked) == (5, 4, 4)
    assert marked(redis) == {f"{pk}:REPLICATION" for pk in ids}


def test_a_pass_reads_what_changed_since_its_watermark_and_five_minutes_before_it(redis: Redis) -> None:
    settle()
    lost = drifted(update_time=ago(minutes=6, seconds=30) + timedelta(minutes=2))
    older = drifted(update_time=ago(minutes=30))
    later = drifted(update_time=ago(seconds=5))  # within the grace: its mark may be on its way
    outcome = reconcile()
    assert (outcome.looked_at, outcome.marked) == (1, 1)
    assert marked(redis) == {f"{lost}:REPLICATION"}
    assert reconcile(full=True).drifted == 3
    assert marked(redis) == {f"{pk}:REPLICATION" for pk in (lost, older, later)}


def test_a_task_whose_time_harbor_has_cleared_is_compared_in_each_pass(redis: Redis) -> None:
    settle()
    lost = drifted(update_time=None)
    drifts = reconcile().examples
    assert [(one.execution_id, one.stored, one.true, one.changed_at) for one in drifts] == [
        (lost, "Running", "Success", None)
    ]
    redis.flushall()
    answer = data("harbor", "repair", "drift")
    assert (answer["looked_at"], answer["marked"], answer["first_drifts"][0]["changed_at"]) == (1, 1, None)
    assert "Looked at 1 execution: 1 drifted, 1 of them waiting already" in said("harbor", "repair", "drift")


def test_pages_are_bounded_and_no_execution_is_looked_at_twice(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.reconciliation.PAGE", 2)
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.reconciliation.MOST", 4)
    settle()
    ids = [drifted() for _ in range(9)]
    for of in ids:
        task(of, "Error", update_time=ago(minutes=1))
    seen: list[int] = []
    outcome = reconcile(progress=seen.append)
    assert seen == [2, 4, 6, 8, 9]
    assert (outcome.looked_at, outcome.marked) == (9, 9)
    assert len(marked(redis)) == 9


def test_a_mark_has_the_vendor_of_the_tasks_as_those_of_harbor_have(redis: Redis) -> None:
    scan = execution("Running", vendor_type="SCAN_ALL")
    task(scan, "Success", vendor_type="IMAGE_SCAN")
    odd = execution("Running", vendor_type="")
    task(odd, "Success", vendor_type="a:b")
    none = execution("Running")
    task(none, "Success", vendor_type="")
    redis.sadd(HARBORS_SET, f"{scan}:IMAGE_SCAN")
    outcome = reconcile()
    assert (outcome.drifted, outcome.waiting, outcome.marked) == (3, 1, 2)
    assert marked(redis) == {f"{scan}:IMAGE_SCAN", f"{odd}:a_b", f"{none}:?"}
    claim = execution_queue().claim("me", 10)
    assert (len(claim.claim), claim.unreadable) == (3, ())


def test_what_harbors_sweep_gave_up_is_left_as_harbor_left_it() -> None:
    """It sets executions that are Running for a week and have no Running task, and no end."""
    given_up = execution("Success", start_time=ago(days=8))
    task(given_up, "Pending")
    its_end = execution("Error", start_time=ago(days=8))
    task(its_end, "Error", end_time=T1)
    runs = execution("Success", start_time=ago(days=8))
    task(runs, "Running")
    young = execution("Success", start_time=ago(days=6))
    task(young, "Pending")
    found = {one.execution_id: one.true for one in reconcile(full=True).examples}
    assert found == {its_end: "Error", runs: "Running", young: "Running"}


def test_a_pass_reads_the_table_once_and_not_in_the_order_of_the_index() -> None:
    asked(
        "INSERT INTO execution (vendor_type, trigger, revision)"
        " SELECT 'A', 'MANUAL', 0 FROM generate_series(1, 2000)"
    )
    asked(
        "INSERT INTO task (execution_id, status, status_code, vendor_type, update_time)"
        " SELECT id, 'Success', 3, 'A', now() - interval '1 hour' FROM execution, generate_series(1, 10)"
    )
    asked("ANALYZE execution, task")
    moment = datetime.now(UTC)
    # few are wanted, so the order of the index would look cheap
    values = {"after_id": 0, "since": moment, "margin": timedelta(hours=2), "before": moment, "most": 10}
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {text('harbor_refresh.tasks', 'changed_executions')}", values)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert plan.count("Seq Scan on task") == 1, plan


# quarantine


def test_a_release_from_quarantine_of_tasks_without_a_time_is_no_error(redis: Redis) -> None:
    of = drifted(update_time=None)
    quarantine([of], 5)
    assert reconcile().drifted == 0
    assert release([of]) == [of]
    assert (Release.objects.count(), Quarantine.objects.count()) == (0, 0)
    assert marked(redis) == {f"{of}:REPLICATION"}
    refresh([of])
    assert stored(of, "status") == ("Success",)


def test_the_settings_of_the_grace_count(monkeypatch: pytest.MonkeyPatch) -> None:
    settle()
    drifted(update_time=ago(minutes=2))
    monkeypatch.setattr(pacing, "RECONCILE_GRACE_SECONDS", 3600)
    assert reconcile().looked_at == 0
