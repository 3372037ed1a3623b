"""What a report marks, when its mark is sent, and what is refreshed at once."""

import logging

import pytest
from django.db import transaction

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from tests.integration.database_state import rows
from tests.integration.pipeline.pipeline_state import marked, member
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_mark_is_sent_only_after_the_commit(redis: Redis) -> None:
    execution, tasks = made(1)
    with transaction.atomic():
        report([Report(tasks[0], "Running")])
        assert marked(redis) == set()
    assert marked(redis) == {member(execution)}


def test_a_rollback_marks_nothing_and_reports_nothing(redis: Redis) -> None:
    _, tasks = made(1)
    before = rows(Task)
    with transaction.atomic():
        report([Report(tasks[0], "Running")])
        transaction.set_rollback(True)
    assert rows(Task) == before
    assert whole_redis(redis) == {}


def test_reports_that_change_nothing_mark_nothing(redis: Redis) -> None:
    _, tasks = made(1)
    report([Report(tasks[0], "Running")])
    redis.flushall()
    report([Report(tasks[0], "Running"), Report(tasks[0], "Pending")])
    assert whole_redis(redis) == {}


def test_with_redis_down_a_report_is_applied_and_logs_the_lost_marks(
    redis_down: None, caplog: pytest.LogCaptureFixture
) -> None:
    _, tasks = made(1)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert report([Report(tasks[0], "Running")]).applied == 1
    assert Task.objects.get().status == "Running"
    (line,) = caplog.records
    assert line.levelname == "WARNING"
    assert line.getMessage().startswith(
        "Could not mark 1 executions, reconcile will find them: Redis: ConnectionError"
    )


def test_a_report_that_stops_a_task_refreshes_at_once_and_marks_too(redis: Redis) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Stopped")])
    assert status_of(execution) == "Stopped"
    assert marked(redis) == {member(execution)}


def test_a_report_that_ends_a_task_without_stopping_it_waits_for_the_queue(redis: Redis) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    assert status_of(execution) == "Running"
    assert marked(redis) == {member(execution)}
