"""Open executions: jobs are added until they are closed, from outside or by their jobs."""

from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, chain
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from harbor_refresh.executions.admin.lists import with_task_counts
from harbor_refresh.executions.deliveries.claims import read_changes
from harbor_refresh.executions.errors import AlreadyFinal, ExecutionClosed, Refused
from harbor_refresh.executions.lifecycle.gates import close_overdue
from harbor_refresh.executions.models import Addition, Delivery, Execution, Gate, Subscription
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, sender, start
from harbor_refresh.tasks.jobs.nodes import this_worker
from harbor_refresh.tasks.jobs.running.handle import Untracked
from harbor_refresh.tasks.models import Job
from tests.integration.jobs.sample_jobs import Outbox, arguments_sent, beats, delivered, ends, failed

app = Celery("a growing team", set_as_current=False)

pytestmark = pytest.mark.usefixtures("database")


@app.task(base=TrackedJob, name="a.growing.job", shared=False)
def scan(job: Handle, name: str) -> None:
    pass


def opened(*names: str, **options: Any) -> TrackedExecution:
    return start("SCAN", jobs=[scan.s(name) for name in names], open=True, **options)


def test_jobs_are_added_until_it_is_closed_and_it_ends_with_the_last(outbox: Outbox) -> None:
    execution = opened()
    assert (execution.status, arguments_sent(outbox)) == ("Running", [])
    assert execution.add([scan.s("a"), chain(scan.si("b"), scan.si("c"))]) == 3
    assert arguments_sent(outbox) == ["a", "b"]
    assert ends(execution) == "Running"
    assert execution.add([scan.s("d")]) == 1
    assert execution.close()
    assert not execution.close()
    assert ends(execution) == "Success"
    for jobs in ([scan.s("e")], []):
        with pytest.raises(ExecutionClosed):
            execution.add(jobs)
    assert list(Job.objects.order_by("pk").values_list("args", flat=True)) == [["a"], ["b"], ["c"], ["d"]]


def test_an_addition_costs_what_it_adds_and_not_what_is_there(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "FLOOR", 10_000)  # the broker has room for all
    execution = opened()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            execution.add([scan.s("x")])
        return len(captured)

    before = queries()
    execution.add(scan.s(str(number)) for number in range(2_500))
    assert queries() == before


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


@pytest.mark.usefixtures("at_once")
def test_a_job_adds_jobs_to_its_execution_while_it_runs(outbox: Outbox) -> None:
    """The execution was not opened: the task of the job keeps it from ending."""
    beats(this_worker.id)
    execution = start("SCAN", jobs=[scan.s("a")])
    handles: list[Handle] = []

    def work(job: Handle) -> None:
        handles.append(job)
        assert (job.execution, job.execution.add([scan.s("b")])) == (execution, 1)

    (message,) = outbox.take()
    delivered(message, work)
    assert arguments_sent(outbox) == ["b"]
    assert ends(execution) == "Success"
    with pytest.raises(AlreadyFinal):
        handles[0].execution.add([scan.s("c")])
    with pytest.raises(Refused, match="called like a function"):
        assert Untracked(scan).execution


def test_an_execution_that_is_not_closed_in_time_ends_as_error(outbox: Outbox) -> None:
    execution, other = opened("a", close_after=60), opened("b")
    assert Gate.objects.get(pk=execution.pk).closes_at < timezone.now() + timedelta(seconds=61)
    assert Gate.objects.get(pk=other.pk).closes_at > timezone.now() + timedelta(hours=23)
    Gate.objects.filter(pk=execution.pk).update(closes_at=timezone.now())
    close_overdue()
    assert [ends(one) for one in (execution, other)] == ["Error", "Running"]
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("c")])


def closed(execution: TrackedExecution) -> None:
    execution.close()
    ends(execution, "Error")


def stopped(execution: TrackedExecution) -> None:
    execution.stop()


def failed_and_stopped(execution: TrackedExecution) -> None:
    """While it was open. Its status is Error as before, so a retry is what its operator finds to do."""
    assert ends(execution, "Error") == "Running"
    execution.stop()


@pytest.mark.parametrize(
    ("end", "status", "verb"),
    [
        (closed, "Error", TrackedExecution.retry_failed),
        (stopped, "Stopped", TrackedExecution.resume_stopped),
        (failed_and_stopped, "Error", TrackedExecution.retry_failed),
    ],
)
def test_another_run_opens_no_execution_and_it_may_succeed(
    end: Any, status: str, verb: Any, outbox: Outbox
) -> None:
    execution = opened("a")
    end(execution)
    assert execution.status == status
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert verb(execution) == 1
    with pytest.raises(ExecutionClosed):
        execution.add([scan.s("b")])
    assert ends(execution) == "Success"


def test_a_retry_of_what_failed_leaves_what_was_stopped(outbox: Outbox) -> None:
    execution = opened("a", "b")
    failed(execution, execution.tasks.get(job__args=["a"]).job_id)
    execution.stop()
    assert execution.retry_failed() == 1
    assert ends(execution) == "Stopped"
    assert execution.progress().counts == {"Success": 1, "Stopped": 1}
    assert execution.resume_stopped() == 1
    assert ends(execution) == "Success"


def test_the_gate_is_no_job_for_those_who_count(outbox: Outbox) -> None:
    execution = opened("a", "b")
    execution.close()
    assert ends(execution) == "Success"
    assert execution.progress().counts == {"Success": 2}
    [row] = with_task_counts([execution])
    assert row.__dict__["task_counts"] == {"Success": 2}
    change = Delivery(pk=1, execution_id=execution.pk, subscription=Subscription(), changed_at=execution.end_time)
    assert read_changes([change])[1].counts == {"Success": 2}


@pytest.mark.parametrize(("stops_first", "status"), [(True, "Success"), (False, "Error")])
def test_of_a_stop_and_the_time_limit_the_first_says_whether_a_retry_opens_the_gate(
    stops_first: bool, status: str, outbox: Outbox
) -> None:
    """After the limit jobs may be missing, which no retry brings."""
    execution = opened("a")
    ends(execution, "Error")
    Gate.objects.update(closes_at=timezone.now() - timedelta(seconds=1))
    for end in (execution.stop, close_overdue) if stops_first else (close_overdue, execution.stop):
        end()
    assert execution.retry_failed() == 1
    assert close_overdue() == 0
    assert ends(execution) == status
