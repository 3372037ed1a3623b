"""Rows that another transaction has locked: a claim skips them, a direct refresh waits."""

import time
from typing import Any

import psycopg
import pytest
from django.db import connection

from executions.creation import NewExecution, NewTask, create_many
from executions.deletion import delete
from executions.models import Execution, Quarantine, Task
from executions.reports import Report, report
from executions.rollup import Refreshed, refresh
from executions.sql import text as statement_of
from tasks.conf import refresh_settings
from tasks.pacing import BUSY_SECONDS, SMALL
from tasks.pipeline.refresher import refresh_claim
from tasks.queue import execution_queue
from tests import servers
from tests.integration.concurrency import in_background, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import made, marked, member, names, rows_come_in_another_order, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")

LOCKED = 20


def two_hundred() -> tuple[list[int], set[str]]:
    """Ids and members of executions that are marked, and Success once they are refreshed."""
    executions = create_many([NewExecution("TEST", tasks=[NewTask()])] * 200)
    report([Report(pk, "Success") for pk in Task.objects.values_list("pk", flat=True)])
    return [one.pk for one in executions], {member(one) for one in executions}


@pytest.mark.parametrize("strength", ["UPDATE", "NO KEY UPDATE", "SHARE"])
def test_locked_rows_are_released_without_an_attempt_and_other_rows_do_not_wait(
    strength: str, redis: Redis, database: str, told: list[Any]
) -> None:
    ids, members = two_hundred()
    locked = set(ids[::10])
    assert len(locked) == LOCKED
    claim = execution_queue().claim("me", 1000).claim
    assert set(claim.members) == members
    told.clear()
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute(f"SELECT FROM execution WHERE id = ANY(%s) FOR {strength}", [list(locked)])
        began = time.monotonic()
        outcome = refresh_claim(claim)
        assert time.monotonic() - began < 2
    assert outcome == Refreshed(succeeded=180, changed=180, failed={}, busy=locked)
    assert names(told) == ["refreshed"]
    assert {pk: row["status"] for pk, row in rows(Execution).items()} == {
        pk: "Running" if pk in locked else "Success" for pk in ids
    }
    state = whole_redis(redis)
    assert state["queue:v2"] == {f"{pk}:TEST" for pk in locked}
    assert not {"processing", "attempts"} & set(state)
    again = execution_queue().claim("me", 1000).claim
    assert refresh_claim(again) == Refreshed(succeeded=20, changed=20)
    assert set(Execution.objects.values_list("status", flat=True)) == {"Success"}
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))


def test_a_row_that_is_locked_again_and_again_is_never_quarantined(redis: Redis, database: str) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution FOR UPDATE")
        for _ in range(2 * refresh_settings().max_attempts):
            claim = execution_queue().claim("me", 10).claim
            assert refresh_claim(claim) == Refreshed(busy={execution.pk})
    assert (rows(Quarantine), marked(redis)) == ({}, {member(execution)})


@pytest.mark.parametrize(("count", "looks"), [(1, 1), (SMALL, 1), (SMALL + 1, 0)])
def test_a_few_locked_rows_are_tried_again_soon_and_many_with_the_next_tick(
    count: int, looks: int, told: list[tuple[str, dict[str, Any]]], database: str
) -> None:
    for _ in range(count):
        report([Report(made(1)[1][0], "Success")])
    claim = execution_queue().claim("me", 100).claim
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution FOR UPDATE")
        told.clear()
        refresh_claim(claim)
    woken = [values for name, values in told if name == "woken"]
    assert woken == [{"delay": BUSY_SECONDS, "anyway": True}] * looks


def test_only_refreshable_executions_count_as_busy(database: str) -> None:
    (busy, _), (held, _), (free, _), (gone, _) = made(1), made(1), made(1), made(1)
    Quarantine.objects.create(execution=held, reason="x", attempts=1)
    delete([gone.pk])
    ids = [busy.pk, held.pk, free.pk, gone.pk]
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution WHERE id = ANY(%s) FOR UPDATE", [[busy.pk, held.pk]])
        assert refresh(ids, wait=False) == Refreshed(succeeded=1, busy={busy.pk})
    assert refresh(ids, wait=False) == Refreshed(succeeded=2)


def test_a_direct_refresh_waits_for_the_lock(database: str) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution FOR UPDATE")
        with in_background(lambda: refresh([execution.pk])) as refreshed:
            wait_until(lambda: waiting_for_locks() == 1, "the refresh waits for the row")
            assert status_of(execution) == "Running"
            other.rollback()
            assert refreshed() == Refreshed(succeeded=1, changed=1)
    assert status_of(execution) == "Success"


def test_a_refresh_locks_in_the_order_of_ids_and_not_of_the_table(database: str) -> None:
    """It waits for the first row before it locks the second; else two refreshes could wait for each other."""
    (first, (one,)), (second, (two,)) = made(1), made(1)
    report([Report(one, "Success"), Report(two, "Success")])
    rows_come_in_another_order(database, "execution", first.pk)
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE", [first.pk])
        with in_background(lambda: refresh([first.pk, second.pk])) as refreshed:
            wait_until(lambda: waiting_for_locks() == 1, "the refresh waits for the first row")
            other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE NOWAIT", [second.pk])
            other.rollback()
            assert refreshed() == Refreshed(succeeded=2, changed=2)


def test_the_refresh_reads_its_locks_and_its_tasks_in_two_statements() -> None:
    """READ COMMITTED is what makes the second see what the first waited for."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone()[0] == "read committed"
    assert "FOR NO KEY UPDATE" in statement_of("executions", "lock_executions")
