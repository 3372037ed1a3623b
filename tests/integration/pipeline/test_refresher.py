"""work: a claim is refreshed and completed, also beside other claims and marks of the same execution."""

import logging
from typing import Any

import pytest

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.executions.models import Execution, StatusChange
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.node import this_node
from tests.integration.concurrency import Pause, in_background
from tests.integration.pipeline.pipeline_state import marked, member, names
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import delete, made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_claim_is_refreshed_once_and_logged_in_the_words_that_operators_grep_for(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    claims: list[Any] = []
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert dispatch(claims.extend, 0) == 1
        outcome = refresh_claim(claims[0])
        assert (outcome.succeeded, outcome.changed) == (1, 1)
        assert refresh_claim(claims[0]).succeeded == 0
    assert status_of(execution) == "Success"
    assert [one.getMessage() for one in caplog.records] == [
        "Claimed 1 executions for processing",
        "Refresh outdate execution status done, 1 succeed, 0 failed",
        f"1 of a claim of {this_node.name} had been recovered meanwhile: left alone",
    ]
    assert set(whole_redis(redis)) <= {"nodes", "cursor", "wake"}


def one_row_of_history_for_each_revision(execution: Execution) -> bool:
    execution.refresh_from_db()
    rows = StatusChange.objects.filter(execution_id=execution.pk).order_by("revision")
    return [row.revision for row in rows] == list(range(1, execution.revision + 1))


def test_of_two_live_claims_of_one_execution_the_second_skips_the_locked_row_and_is_released(
    redis: Redis,
) -> None:
    execution, tasks = made(2)
    report([Report(tasks[0], "Success")])
    queue = execution_queue()
    first = queue.claim("me", 10).claim
    with Pause("deciding") as pause, in_background(lambda: refresh_claim(first)) as worked:
        pause.wait_until_reached()
        report([Report(tasks[1], "Success")])
        second = queue.claim("other", 10).claim
        assert second.members == first.members == (member(execution),)
        assert refresh_claim(second) == Refreshed(locked={execution.pk})
        assert marked(redis) == {member(execution)}
        assert len(whole_redis(redis)["processing"]) == 1, "the first is still at work"
        pause.go_on.set()
        worked()
    assert status_of(execution) == "Running"
    assert marked(redis) == {member(execution)}
    assert refresh_claim(queue.claim("me", 10).claim).changed == 1
    assert status_of(execution) == "Success"
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))
    assert one_row_of_history_for_each_revision(execution)


def test_two_members_of_one_execution_are_both_completed(redis: Redis) -> None:
    """Another program wrote another vendor: `1:A` and `1:B` name the same row."""
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    execution_queue().mark([f"{execution.pk}:OTHER"])
    refresh_claim(execution_queue().claim("me", 10).claim)
    assert not {"queue:v2", "processing"} & set(whole_redis(redis))


def test_members_of_a_deleted_execution_are_completed_without_a_log_line(redis: Redis, told: list[Any]) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    claim = execution_queue().claim("me", 10).claim
    delete([execution.pk])
    told.clear()
    outcome = refresh_claim(claim)
    assert (outcome.succeeded, outcome.failed) == (0, {})
    assert names(told) == ["refreshed"]
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))
