"""Open executions: jobs are added until they are closed, from outside or by their jobs."""

from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, chain
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from harbor_refresh.executions.errors import AlreadyFinal, ExecutionClosed, NotCommitted, Refused
from harbor_refresh.executions.lifecycle.gates import close_overdue
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Addition, Execution, Gate, Task
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.jobs.handle import Untracked
from harbor_refresh.tasks.jobs.lifecycle.publication import publish_recorded
from harbor_refresh.tasks.jobs.records.arguments import Arguments
from harbor_refresh.tasks.jobs.records.run import Run
from harbor_refresh.tasks.jobs.repair.job_recovery import recover_jobs
from harbor_refresh.tasks.models import Job
from tests.integration.concurrency import at_once
from tests.integration.jobs.sample_jobs import Outbox, aged

app = Celery("a growing team", set_as_current=False)

pytestmark = pytest.mark.usefixtures("database", "clock")


@app.task(base=TrackedJob, name="a.growing.job", shared=False)
def scan(job: Handle, name: str) -> None:
    pass


@app.task(base=TrackedJob, name="a.growing.unique", unique=True, shared=False)
def only_one(job: Handle, name: str) -> None:
    pass


def opened(*names: str, **options: Any) -> TrackedExecution:
    return start("SCAN", jobs=[scan.s(name) for name in names], open=True, **options)


def names(outbox: Outbox) -> list[str]:
    """The first arguments of the jobs whose messages were sent since the last look."""
    messages, outbox.messages = outbox.messages, []
    return sorted(message.args[0] for message in messages)


def ends(execution: Execution, status: str = "Success") -> str:
    """All jobs that are there end, and the execution is refreshed."""
    now = timezone.now()
    jobs = Task.objects.filter(execution=execution, job__isnull=False)
    jobs.update(status=status, status_code=3, end_time=now, update_time=now)
    refresh([execution.pk])
    execution.refresh_from_db()
    return execution.status


def overdue() -> None:
    Gate.objects.update(closes_at=timezone.now() - timedelta(seconds=1))


def test_jobs_are_added_until_it_is_closed_and_it_ends_with_the_last(outbox: Outbox) -> None:
    execution = opened()
    assert (execution.status, names(outbox)) == ("Running", [])
    assert execution.add([scan.s("a"), chain(scan.si("b"), scan.si("c"))]) == 3
    assert names(outbox) == ["a", "b"]
    assert ends(execution) == "Running"
    assert execution.add([scan.s("d")]) == 1
    assert execution.close()
    assert not execution.close()
    assert ends(execution) == "Success"
    for jobs in ([scan.s("e")], []):
        with pytest.raises(ExecutionClosed):
            execution.add(jobs)
    assert list(Job.objects.order_by("pk").values_list("args", flat=True)) == [["a"], ["b"], ["c"], ["d"]]


def test_an_addition_sends_its_own_messages_after_the_commit_and_no_others(outbox: Outbox) -> None:
    """The first addition's producer has died before it sent its messages. Recovery sends them."""
    execution = opened()
    outbox.is_away = True
    execution.add([scan.s("of the dead")])
    outbox.is_away = False
    with transaction.atomic():
        execution.add([scan.s("b")])
        assert names(outbox) == []
    assert names(outbox) == ["b"]
    with transaction.atomic():
        execution.add([scan.s("never")])
        transaction.set_rollback(True)
    assert names(outbox) == []
    aged(execution)
    assert publish_recorded(outbox.publish) == 1
    assert names(outbox) == ["of the dead"]
    assert ends(execution) == "Running"


def test_an_addition_costs_what_it_adds_and_not_what_is_there(outbox: Outbox) -> None:
    execution = opened()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            execution.add([scan.s("x")])
        return len(captured)

    before = queries()
    execution.add(scan.s(str(number)) for number in range(2_500))
    assert queries() == before


def test_an_addition_with_a_key_is_made_once(outbox: Outbox) -> None:
    execution = opened()
    assert [execution.add([scan.s("a")], once="page 1") for _ in range(3)] == [1, 0, 0]
    assert execution.add([scan.s("b")], once="page 2") == 1
    assert names(outbox) == ["a", "b"]
    execution.close()
    assert execution.add([scan.s("a")], once="page 1") == 0
    assert execution.tasks.exclude(job_id="").count() == 2


def test_of_one_addition_that_many_make_at_once_one_is_made(outbox: Outbox) -> None:
    execution = opened()
    assert sum(at_once(*[lambda: execution.add([scan.s("a"), scan.s("b")], once="k")] * 8)) == 2
    assert names(outbox) == ["a", "b"]


def test_a_unique_job_that_is_under_way_is_left_out_of_an_addition(outbox: Outbox) -> None:
    execution = opened()
    assert execution.add([only_one.s("a"), only_one.s("a"), scan.s("b")]) == 2
    assert execution.add([only_one.s("a")], once="again") == 0
    assert names(outbox) == ["a", "b"]
    assert Addition.objects.count() == 1


def test_what_cannot_be_run_is_refused_and_leaves_nothing(outbox: Outbox) -> None:
    execution = opened()
    with pytest.raises(Refused, match="takes signatures of tracked jobs"):
        execution.add(5)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="takes arguments that are JSON"):
        execution.add([scan.s(object())], once="k")
    with pytest.raises(Refused, match="close_after is the time limit of an open execution"):
        start("SCAN", jobs=[scan.s("a")], close_after=5)
    with pytest.raises(Refused, match="the time limit of an open execution takes seconds"):
        opened(close_after=0)
    assert (Execution.objects.count(), Job.objects.count(), Addition.objects.count()) == (1, 0, 0)


def test_a_job_adds_jobs_to_its_execution_while_it_runs(outbox: Outbox) -> None:
    """The execution was not opened: the task of the job keeps it from ending."""
    execution = start("SCAN", jobs=[scan.s("a")])
    task = execution.tasks.get()
    handle = Handle(scan, Run(task.job_id, task.pk, "node", 0, 1), Arguments([], {}, 0))
    assert handle.execution == execution
    assert handle.execution.add([scan.s("b")]) == 1
    assert names(outbox) == ["a", "b"]
    assert ends(execution) == "Success"
    with pytest.raises(AlreadyFinal):
        handle.execution.add([scan.s("c")])
    with pytest.raises(Refused, match="called like a function"):
        assert Untracked(scan).execution


def test_a_pass_of_recovery_closes_what_was_not_closed_in_time(outbox: Outbox) -> None:
    execution, other = opened("a", close_after=60), opened("b")
    assert Gate.objects.get(pk=execution.pk).closes_at < timezone.now() + timedelta(seconds=61)
    assert Gate.objects.get(pk=other.pk).closes_at > timezone.now() + timedelta(hours=23)
    Gate.objects.filter(pk=execution.pk).update(closes_at=timezone.now())
    recover_jobs(outbox.publish)
    assert [ends(one) for one in (execution, other)] == ["Error", "Running"]
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("c")])


def test_a_retry_runs_failed_jobs_again_and_opens_no_execution(outbox: Outbox) -> None:
    execution = opened("a")
    execution.close()
    assert ends(execution, "Error") == "Error"
    assert execution.retry_failed() == 1
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert ends(execution) == "Success"


def test_a_stopped_execution_is_closed_and_may_succeed_after_it_was_resumed(outbox: Outbox) -> None:
    execution = opened("a")
    execution.stop()
    assert execution.status == "Stopped"
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert execution.resume_stopped() == 1
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert ends(execution) == "Success"


def test_a_failed_execution_that_was_stopped_may_succeed_after_a_retry(outbox: Outbox) -> None:
    """While it was open. Its status is Error as before, so a retry is what its operator finds to do."""
    execution = opened("a")
    assert ends(execution, "Error") == "Running"
    execution.stop()
    assert execution.status == "Error"
    assert execution.retry_failed() == 1
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert ends(execution) == "Success"


def test_a_retry_of_what_failed_leaves_what_was_stopped(outbox: Outbox) -> None:
    execution = opened("a", "b")
    execution.tasks.filter(job__args=["a"]).update(status="Error", status_code=3, end_time=timezone.now())
    execution.stop()
    assert execution.retry_failed() == 1
    execution.tasks.filter(job__args=["a"]).update(status="Success", status_code=3, end_time=timezone.now())
    refresh([execution.pk])
    execution.refresh_from_db()
    assert (execution.status, execution.progress().counts) == ("Stopped", {"Success": 1, "Stopped": 1})
    assert execution.resume_stopped() == 1
    assert ends(execution) == "Success"


def test_an_execution_that_was_stopped_with_no_job_left_is_resumed_without_one(outbox: Outbox) -> None:
    execution = opened("a")
    assert ends(execution) == "Running"
    execution.stop()
    assert execution.status == "Stopped"
    assert execution.retry_failed() == 0
    assert execution.status == "Stopped"
    assert execution.resume_stopped() == 0
    assert execution.status == "Success"


@pytest.mark.parametrize(("stops_first", "status"), [(True, "Success"), (False, "Error")])
def test_of_a_stop_and_the_time_limit_the_first_says_whether_a_retry_opens_the_gate(
    stops_first: bool, status: str, outbox: Outbox
) -> None:
    """After the limit jobs may be missing, which no retry brings."""
    execution = opened("a")
    ends(execution, "Error")
    overdue()
    for end in (execution.stop, close_overdue) if stops_first else (close_overdue, execution.stop):
        end()
    assert execution.retry_failed() == 1
    assert close_overdue() == 0
    assert ends(execution) == status


def test_a_transaction_that_adds_or_closes_does_not_wait_for_the_end(outbox: Outbox) -> None:
    execution = opened()
    with transaction.atomic():
        execution.add([scan.s("a")])
        with pytest.raises(NotCommitted):
            execution.wait(timeout=0)
    with transaction.atomic():
        execution.close()
        with pytest.raises(NotCommitted):
            execution.wait(timeout=0)
    assert ends(execution) == "Success"
    assert execution.wait() == "Success"
