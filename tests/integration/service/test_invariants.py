"""Each invariant, seen to fail by breaking rows on purpose."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from examples.simulation import invariants
from examples.simulation.invariants import Violation, set_aside, violations
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import finish
from harbor_refresh.executions.models import Execution, Quarantine, StatusChange, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.jobs.sample_jobs import in_a_row
from tests.started import start

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def rerun(queue: ExecutionQueue) -> Execution:
    """An execution whose history is Error, Running, Success: a task failed and ran again."""
    execution = create(NewExecution("IMAGE_SCAN", tasks=[NewTask(), NewTask()]))
    first, second = execution.tasks.order_by("pk").values_list("pk", flat=True)
    for step in (
        [Report(first, "Success"), Report(second, "Error")],
        [Report(second, "Running", revision=1)],
        [Report(second, "Success", revision=1)],
    ):
        report(step)
        refresh([execution.pk])
    drain(queue)
    execution.refresh_from_db()
    return execution


def drain(queue: ExecutionQueue) -> None:
    while (batch := queue.claim("test-node", 1000)).claim.members:
        queue.complete(batch.claim)


def names() -> list[str]:
    return [one.name for one in violations()]


def test_the_checks_find_nothing_wrong_after_the_use_cases(rerun: Execution) -> None:
    finish(create(NewExecution("SLACK")).pk, Status.SUCCESS)
    assert violations() == []
    assert set_aside() == []


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (("Error", "Pending"), "Running"),
        (("Error", "Scheduled"), "Running"),
        (("Stopped", "Running"), "Running"),
        (("Stopped", "Error"), "Error"),
        (("Success", "Stopped"), "Stopped"),
        (("Success", "Success"), "Success"),
    ],
)
def test_k1_holds_only_for_the_right_status(queue: ExecutionQueue, words: tuple[str, str], right: str) -> None:
    execution = create(NewExecution("IMAGE_SCAN", tasks=[NewTask(), NewTask()]))
    report(Report(task.pk, word) for task, word in zip(execution.tasks.all(), words, strict=True))
    refresh([execution.pk])
    last_end = max((task.end_time for task in execution.tasks.all() if task.end_time), default=None)
    for status in ("Running", "Error", "Stopped", "Success"):
        end = None if status == "Running" else last_end
        Execution.objects.filter(pk=execution.pk).update(status=status, end_time=end)
        assert ("K1" not in names()) == (status == right), status


def test_k1_sees_a_wrong_end(rerun: Execution) -> None:
    Execution.objects.filter(pk=rerun.pk).update(end_time=datetime(2020, 1, 1, tzinfo=UTC))
    (one,) = violations()
    assert (one.name, one.execution_id) == ("K1", rerun.pk)
    assert "is Success with end 2020-01-01" in one.what
    assert "0 unfinished, 0 Error, 0 Stopped, 2 Success" in one.what


def test_k1_does_not_depend_on_the_rollup(rerun: Execution) -> None:
    """The rollup is wrong, and so is the stored status, which agrees with it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION execution_rollup(ids bigint[])"
            " RETURNS TABLE (execution_id bigint, status text, end_time timestamptz) LANGUAGE sql STABLE"
            " AS $$ SELECT t.execution_id, 'Error', max(t.end_time) FROM task t"
            " WHERE t.execution_id = ANY(ids) GROUP BY 1 $$"
        )
    refresh([rerun.pk])
    rerun.refresh_from_db()
    assert rerun.status == "Error"
    assert "K1" in names()


def test_quarantined_executions_are_listed_separately(rerun: Execution) -> None:
    Quarantine.objects.create(execution=rerun, reason="a test", attempts=5)
    Execution.objects.filter(pk=rerun.pk).update(end_time=datetime(2020, 1, 1, tzinfo=UTC))
    assert violations() == []
    assert [(one.name, one.execution_id) for one in set_aside()] == [("K1", rerun.pk)]


def test_k2_sees_the_backlog_the_work_in_flight_and_the_messages_of_the_broker(
    queue: ExecutionQueue,
) -> None:
    queue.mark(["1:IMAGE_SCAN", "2:IMAGE_SCAN", "3:SLACK"])
    queue.claim("test-node", 1)
    assert violations(broker=lambda: 7) == [
        Violation("K2", None, "2 executions wait in the queue"),
        Violation("K2", None, "1 executions are in processing"),
        Violation("K2", None, "7 messages are with the broker"),
    ]


def test_k2_sees_a_job_that_is_not_over_while_no_server_holds_anything_of_it(queue: ExecutionQueue) -> None:
    """So it is while a worker has taken its message, and has not yet noted that."""
    start("SCAN", [in_a_row(NewJob("a.job"), NewJob("a.job")), [NewJob("a.job")]])
    drain(queue)
    assert violations(broker=lambda: 0) == [Violation("K2", None, "3 jobs have not ended")]
    assert violations() == [], "jobs are a matter of the broker"


def test_no_work_slips_from_one_place_to_the_next_behind_the_look_at_it(queue: ExecutionQueue) -> None:
    """The last task ends while its message is counted, as a worker reports it, marks it and acknowledges."""
    execution = create(NewExecution("IMAGE_SCAN", tasks=[NewTask()]))
    task = execution.tasks.get().pk
    report([Report(task, "Running")])
    refresh([execution.pk])
    drain(queue)

    def ends_and_is_acknowledged() -> int:
        report([Report(task, "Success")])
        queue.mark([f"{execution.pk}:IMAGE_SCAN"])
        return 0

    found = [(one.name, one.execution_id) for one in violations(broker=ends_and_is_acknowledged)]
    assert found == [("K1", execution.pk), ("K2", None)]


def changes(**which: Any) -> QuerySet[StatusChange]:
    return StatusChange.objects.filter(**which)


def one_more(execution: Execution) -> StatusChange:
    return StatusChange.objects.create(
        execution_id=execution.pk, revision=4, from_status="Success", to_status="Success", at=timezone.now()
    )


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda _: changes(revision=2).delete(), "revision 3 and 2 history rows, from revision 1 to 3"),
        (lambda _: changes().delete(), "revision 3 and 0 history rows"),
        (
            lambda _: changes(revision__lte=2).delete(),
            "revision 3 and 1 history rows, from revision 3 to 3",
        ),
        (lambda _: changes(revision=3).update(revision=4), "revision 3 and 3 history rows, from revision 1 to 4"),
        (
            lambda _: changes(revision=2).update(from_status="Stopped"),
            "begins revision 2 at Stopped, but the one before it ended at Error",
        ),
        (lambda _: changes(revision=3).update(to_status="Stopped"), "is Success, but its history ends at Stopped"),
        (one_more, "revision 3 and 4 history rows"),
    ],
)
def test_k3_sees_an_incomplete_history(rerun: Execution, spoil: Callable[[Execution], object], what: str) -> None:
    spoil(rerun)
    found = [one for one in violations() if one.name == "K3"]
    assert [one.execution_id for one in found] == [rerun.pk] * len(found)
    assert any(what in one.what for one in found), found


def test_k3_accepts_a_long_history_whose_beginning_was_deleted(
    rerun: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    StatusChange.objects.filter(revision=1).delete()
    monkeypatch.setattr(invariants, "HISTORY_KEPT", 2)
    assert violations() == []


def test_k1_sees_a_child_whose_task_in_its_parent_says_something_else(queue: ExecutionQueue) -> None:
    parent = create(NewExecution("SLACK"))
    child = create(NewExecution("SLACK", parent=parent.pk))
    finish(child.pk, Status.SUCCESS)
    refresh([parent.pk])
    drain(queue)
    assert names() == []
    parent.tasks.update(status="Error")
    refresh([parent.pk])
    (found,) = (one for one in violations() if one.name == "K1")
    assert found.execution_id == child.pk
    assert f"and its task in execution {parent.pk} is Error" in found.what


def test_k4_sees_a_final_status_that_reverted_without_a_rerun(rerun: Execution) -> None:
    Task.objects.update(run_count=0)
    assert violations() == [
        Violation("K4", rerun.pk, "left a final status 1 times, but its tasks ran again 0 times")
    ]


def test_the_list_is_bounded_for_each_of_the_four(rerun: Execution) -> None:
    other = create(NewExecution("SLACK", tasks=[NewTask()]))
    Execution.objects.filter(pk__in=(rerun.pk, other.pk)).update(
        status="Stopped", end_time=datetime(2020, 1, 1, tzinfo=UTC)
    )
    assert names().count("K1") == 2
    assert [one.name for one in violations(at_most=1)].count("K1") == 1
