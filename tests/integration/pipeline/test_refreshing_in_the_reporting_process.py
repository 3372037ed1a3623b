"""With an interval of zero the reporting process refreshes, without Redis."""

import logging
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import drifted, fails_with, made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.mark.parametrize("interval", [0, -1])
def test_with_an_interval_of_zero_the_reporting_process_refreshes_and_touches_no_redis(
    interval: int, settings: Settings, redis: Redis, redis_down: None, told: list[Any]
) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = interval
    execution, tasks = made(2)
    report([Report(tasks[0], "Success"), Report(tasks[1], "Error")])
    assert status_of(execution) == "Error"
    assert redis.keys("*") == []
    assert told == []


def test_with_an_interval_of_zero_reconcile_heals_without_redis(
    settings: Settings, redis: Redis, redis_down: None
) -> None:
    execution = drifted()
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    assert reconcile().marked == 1
    assert status_of(execution) == "Success"
    assert redis.keys("*") == []


def test_a_failure_in_the_reporting_process_is_logged(
    settings: Settings, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    fails_with("23514", bad)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert report([Report(good_task, "Success"), Report(bad_task, "Success")]).applied == 2
    assert (status_of(good), status_of(bad)) == ("Success", "Running")
    assert told == [("refreshed", {"outcome": Refreshed(succeeded=1, changed=1, failed={bad.pk: "no more"})})]
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "Refresh outdate execution status done, 1 succeed, 1 failed"),
        ("WARNING", f"Execution {bad.pk} could not be refreshed: no more"),
    ]
