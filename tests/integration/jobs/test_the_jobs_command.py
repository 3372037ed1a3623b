"""`manage.py harbor`, of jobs: what it tells of them, and what it does with those of an execution."""

import re

import pytest
from django.utils import timezone

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.models.operations import Origin
from harbor_refresh.executions.news.audit import Person
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.operations.pauses import pause
from tests.integration.command_output import data, failing, said
from tests.integration.jobs.sample_jobs import (
    QUEUE,
    Outbox,
    beats,
    begun,
    chained,
    failed,
    job,
    recorded,
    sent_before,
    silent,
    statuses,
)

pytestmark = pytest.mark.usefixtures("database", "queue", "outbox")


def test_stats_tell_what_waits_what_runs_where_and_what_is_silent(outbox: Outbox) -> None:
    beats(1, name="one", slots=4)
    beats(2, name="two", slots=2, queues=["other", QUEUE])
    recorded("a", "b", "c")
    first, second, _ = outbox.take()
    assert begun(first, node=1)
    assert begun(second, node=1)
    chained("d", "e", "f")
    recorded("later", options={"countdown": 3_600})
    Job.objects.filter(task__job_id="c").update(report={"since": 0})
    silent(2, 20)
    Node.objects.filter(pk=2).update(suspected_at=timezone.now())
    stats = data("harbor", "status", "--jobs")
    nodes = stats.pop("nodes")
    assert stats == {
        "waiting": 3,
        "sent": 2,
        "running": 2,
        "in_chains": 2,
        "later": 1,
        "limited": 0,
        "unreported": 1,
    }
    assert [(one["name"], one["running"], one["slots"], one["is_suspected"]) for one in nodes] == [
        ("one", 2, 4, False),
        ("two", 0, 2, True),
    ]
    assert said("harbor", "status", "--jobs").splitlines() == [
        "            jobs",
        "waiting        3  their turn has not come, or the broker holds enough",
        "in chains      2  of these, wait for the job before them",
        "later          1  of these, wait for their time",
        "limited        0  of these, wait for their limit",
        "sent           2  are with the broker, in any queue, or were fetched by a worker",
        "running        2  run",
        "unreported     1  have a report that the target of the hook has not taken",
        "",
        "worker        runs  of  queues",
        f"one              2   4  {QUEUE}",
        f"two (silent)     0   2  other, {QUEUE}",
    ]


def why(name: str) -> str:
    reason: str = data("harbor", "why", "--task", job(name).pk)["why"]
    return reason


def test_why_says_what_each_job_waits_for_or_where_it_runs(outbox: Outbox) -> None:
    recorded("sent")
    assert why("sent") == f"no live worker takes the queue {QUEUE}"
    beats(name="one", slots=2)
    (message,) = outbox.take()
    sent_before(3, "sent")
    assert re.fullmatch(r"sent \d+ s ago, 0 of 2 slots of its workers are busy", why("sent"))
    assert begun(message, process=77)
    assert why("sent").startswith("it runs on one, process 77, since ")
    chained("a", "b")
    assert why("b") == f"it waits for task {job('a').pk}, which it needs"
    recorded("later", options={"countdown": 3_600})
    assert why("later").startswith("its time is in 3")
    pause(QUEUE, Person("ada", Origin.ADMIN))
    assert why("a") == f"the queue {QUEUE} is paused by ada"
    failed(Execution.objects.get(tasks__job_id="a"), "a")
    assert why("a") == "it has ended as Error"
    Task.objects.filter(job_id="a").update(status_message="ValueError: broken")
    assert why("a") == "it has ended as Error: ValueError: broken"
    Job.objects.filter(task__job_id="a").update(report={"since": 0})
    assert why("a") == "it has ended, and the target of the hook has not taken its report"


def test_why_shows_a_person_the_job_beside_the_reason() -> None:
    execution = recorded("j")
    task = Task.objects.get()
    assert said("harbor", "why", "--task", task.pk).splitlines()[-6:] == [
        f"task    {task.pk} of execution {execution.pk}",
        "status  Pending",
        "job     a.job",
        f"queue   {QUEUE}",
        "state   sent",
        f"why     no live worker takes the queue {QUEUE}",
    ]
    assert data("harbor", "why", "--task", task.pk)["job"] == {
        "name": "a.job",
        "queue": QUEUE,
        "state": "sent",
        "runs": 0,
    }


def test_why_of_an_execution_says_why_one_of_its_jobs_does_not_run_or_where_it_runs(outbox: Outbox) -> None:
    execution = recorded("a", "b")
    assert data("harbor", "why", execution.pk)["why"] == f"no live worker takes the queue {QUEUE}"
    beats(name="one")
    for message in outbox.take():
        if message.job == "b":
            assert begun(message)
    Task.objects.filter(job_id="b").update(status="Running", status_code=2)
    assert f"\ntask {job('b').pk}        it runs on one, process " in said("harbor", "why", execution.pk)


def test_why_of_a_task_without_a_job_or_of_none_says_so() -> None:
    task = create(NewExecution("SCAN", tasks=[NewTask(job_id="of a runner")])).tasks.get()
    found = data("harbor", "why", "--task", task.pk)
    assert (found["job"], found["why"]) == (None, "it has no job: another program runs it, and reports it")
    assert failing("harbor", "why", "--task", 99_999) == ("", "there is no task 99999.")


def test_why_of_a_task_that_stands_for_a_child_or_keeps_its_execution_open_says_so() -> None:
    parent, opened = create(NewExecution("SCAN")), create(NewExecution("SCAN", open_seconds=60))
    child = create(NewExecution("SCAN", tasks=[NewTask()], parent=parent.pk))
    for execution, reason in (
        (parent, f"it is execution {child.pk}: type `harbor why {child.pk}`"),
        (opened, "it keeps the execution open until `close()` or the time limit"),
    ):
        task = execution.tasks.get()
        assert data("harbor", "why", "--task", task.pk)["why"] == reason
        found = data("harbor", "why", execution.pk)
        assert (found["task_id"], found["why"]) == (task.pk, reason)


@pytest.mark.parametrize("verb", ["stop", "retry", "resume", "delete"])
def test_executions_that_there_are_not_are_named_and_nothing_is_changed(verb: str) -> None:
    known = recorded("a", "b")
    failed(known, "a")
    assert failing("harbor", verb, 99_998, known.pk, 99_999) == (
        "",
        "there is no execution 99998, 99999; nothing was changed",
    )
    assert statuses(known) == ("Running", {"a": "Error", "b": "Pending"})
