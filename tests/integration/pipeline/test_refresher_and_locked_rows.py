"""Rows that another transaction has locked: a claim skips and releases them, and tries them again soon."""

import time
from typing import Any

import pytest

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.conf.pacing import LOCKED_SECONDS, SMALL
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from tests.created import create_many
from tests.integration.concurrency import statement_held_open
from tests.integration.database_state import rows
from tests.integration.pipeline.pipeline_state import marked, member, names
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import made

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.mark.parametrize("strength", ["UPDATE", "NO KEY UPDATE", "SHARE"])
def test_locked_rows_are_released_without_an_attempt_and_other_rows_do_not_wait(
    strength: str, redis: Redis, told: list[Any]
) -> None:
    executions = create_many([NewExecution("TEST", tasks=[NewTask()])] * 200)
    report([Report(pk, "Success") for pk in Task.objects.values_list("pk", flat=True)])
    ids = [one.pk for one in executions]
    locked = set(ids[::10])
    claim = execution_queue().claim("me", 1000).claim
    assert set(claim.members) == {member(one) for one in executions}
    told.clear()
    with statement_held_open(f"SELECT FROM execution WHERE id = ANY(%s) FOR {strength}", [list(locked)]):
        began = time.monotonic()
        outcome = refresh_claim(claim)
        assert time.monotonic() - began < 50, "it waited for the lock_timeout of 60 s"
    assert outcome == Refreshed(succeeded=180, changed=180, failed={}, locked=locked)
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


def test_a_row_that_is_locked_again_and_again_is_never_quarantined(redis: Redis) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with statement_held_open("SELECT FROM execution FOR UPDATE"):
        for _ in range(2 * refresh_settings().max_attempts):
            claim = execution_queue().claim("me", 10).claim
            assert refresh_claim(claim) == Refreshed(locked={execution.pk})
    assert (rows(Quarantine), marked(redis)) == ({}, {member(execution)})


@pytest.mark.parametrize(("count", "looks"), [(1, 1), (SMALL, 1), (SMALL + 1, 0)])
def test_a_few_locked_rows_are_tried_again_soon_and_many_with_the_next_tick(
    count: int, looks: int, told: list[tuple[str, dict[str, Any]]]
) -> None:
    for _ in range(count):
        report([Report(made(1)[1][0], "Success")])
    claim = execution_queue().claim("me", 100).claim
    with statement_held_open("SELECT FROM execution FOR UPDATE"):
        told.clear()
        refresh_claim(claim)
    woken = [values for name, values in told if name == "woken"]
    assert woken == [{"delay": LOCKED_SECONDS, "anyway": True}] * looks
