"""Errors by message, vendor and hour."""

from datetime import UTC, datetime, timedelta

import pytest

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries import error_groups
from harbor_refresh.executions.queries.error_groups import by_hour, by_message, by_vendor, newest_errors

pytestmark = pytest.mark.usefixtures("database")

NOON = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


def failed(vendor: str, *messages: str, at: datetime = NOON) -> Execution:
    execution = create(NewExecution(vendor, tasks=[NewTask() for _ in messages]))
    pks = list(execution.tasks.order_by("pk").values_list("pk", flat=True))
    report([Report(pk, "Error", 1, message) for pk, message in zip(pks, messages, strict=True)])
    Task.objects.filter(pk__in=pks).update(end_time=at)
    return execution


def test_errors_are_counted_by_message_vendor_and_hour_with_an_example_of_each() -> None:
    failed("SCAN", "refused", "refused", "timed out")
    failed("RETENTION", "refused", "", at=NOON + timedelta(hours=1))
    tasks = list(Task.objects.order_by("pk").values_list("pk", flat=True))
    done = create(NewExecution("SCAN", tasks=[NewTask()]))
    report([Report(done.tasks.get().pk, "Success", 1)])

    errors, bound = newest_errors()

    later = NOON + timedelta(hours=1)
    assert [(one.key, one.count, one.last_end, one.task_id) for one in by_message(errors)] == [
        ("refused", 3, later, tasks[3]),
        ("", 1, later, tasks[4]),
        ("timed out", 1, NOON, tasks[2]),
    ]
    assert [(one.key, one.count) for one in by_vendor(errors)] == [("SCAN", 3), ("RETENTION", 2)]
    assert [(one.key, one.count) for one in by_hour(errors)] == [
        (later.replace(minute=0), 2),
        (NOON.replace(minute=0), 3),
    ]
    assert not bound


def test_only_the_newest_errors_are_read_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_groups, "COMPARED", 2)
    failed("SCAN", "old")
    failed("SCAN", "new", "new")

    errors, bound = newest_errors()

    assert [(one.key, one.count) for one in by_message(errors)] == [("new", 2)]
    assert bound == "The errors of the newest 2 tasks that failed."
