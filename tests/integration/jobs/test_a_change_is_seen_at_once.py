"""Each way to run jobs again, or to stop them: when it returns, its caller sees the new status of the execution.
No worker runs here."""

from collections.abc import Callable

import pytest
from django.test import Client

from harbor_refresh.executions.access.audit import Origin, Word
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.errors import StillRunning
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.tasks.jobs import TrackedExecution
from harbor_refresh.tasks.jobs.again import run_job_again
from tests.integration.admin_client import act, signed_in
from tests.integration.command_output import said
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.sample_jobs import ends, failed, recorded, rows, statuses, tasks
from tests.integration.sample_actions import asked, work_off

pytestmark = pytest.mark.usefixtures("database", "outbox")

ADMIN = "/admin/harbor_executions"
Way = Callable[[Execution, Task], object]


def by_the_admin() -> Client:
    return signed_in(superuser=True)


def over_http(path: str) -> object:
    return Program(token(Scope.MANAGE)).post(path)


def by_an_action(verb: Word, execution: Execution) -> object:
    asked(verb, Origin.ADMIN, ids=[execution.pk])
    return work_off()


def tracked(execution: Execution) -> TrackedExecution:
    return TrackedExecution.objects.get(pk=execution.pk)


CONFIRMED = {"confirmed": "yes"}
RETRIES: dict[str, Way] = {
    "retry_failed()": lambda execution, task: tracked(execution).retry_failed(),
    "the job alone": lambda execution, task: run_job_again(task.pk),
    "the API": lambda execution, task: over_http(f"/executions/{execution.pk}/retry"),
    "the API, a task": lambda execution, task: over_http(f"/tasks/{task.pk}/retry"),
    "the command": lambda execution, task: said("harbor", "retry", execution.pk),
    "the admin": lambda e, task: by_the_admin().post(f"{ADMIN}/execution/{e.pk}/retry/", CONFIRMED),
    "the admin, a task": lambda e, task: by_the_admin().post(f"{ADMIN}/task/{task.pk}/retry/", CONFIRMED),
    "the admin, a list": lambda e, task: act(by_the_admin(), f"{ADMIN}/execution/", "retry", [e.pk]),
    "an action on many": lambda execution, task: by_an_action(Word.RETRY, execution),
}
RESUMPTIONS: dict[str, Way] = {
    "resume_stopped()": lambda execution, task: tracked(execution).resume_stopped(),
    "the job alone": lambda execution, task: run_job_again(task.pk),
    "the API": lambda execution, task: over_http(f"/executions/{execution.pk}/resume"),
    "the admin": lambda e, task: by_the_admin().post(f"{ADMIN}/execution/{e.pk}/resume/", CONFIRMED),
    "an action on many": lambda execution, task: by_an_action(Word.RESUME, execution),
}
STOPS: dict[str, Way] = {
    "stop()": lambda execution, task: tracked(execution).stop(),
    "the API": lambda execution, task: over_http(f"/executions/{execution.pk}/stop"),
    "the API, a task": lambda execution, task: over_http(f"/tasks/{task.pk}/stop"),
    "the command": lambda execution, task: said("harbor", "stop", execution.pk),
    "the admin": lambda e, task: by_the_admin().post(f"{ADMIN}/execution/{e.pk}/stop/", CONFIRMED),
    "an action on many": lambda execution, task: by_an_action(Word.STOP, execution),
}


def ended_as(status: str) -> tuple[TrackedExecution, Task]:
    """An execution whose only job has ended so, and which was waited for."""
    execution = tracked(recorded("j"))
    task = execution.tasks.get()
    if status == "Stopped":
        execution.stop()
    else:
        ends(execution, status)
    assert execution.wait(timeout=10) == status
    return execution, task


@pytest.mark.parametrize(
    ("status", "way"),
    [
        *(pytest.param("Error", way, id=f"retried by {name}") for name, way in RETRIES.items()),
        *(pytest.param("Stopped", way, id=f"resumed by {name}") for name, way in RESUMPTIONS.items()),
    ],
)
def test_an_execution_whose_jobs_run_again_is_running_and_waited_for(status: str, way: Way) -> None:
    execution, task = ended_as(status)
    way(execution, task)
    others = Execution.objects.exclude(vendor_type=BULK)
    assert list(others.values_list("status", "end_time")) == [("Running", None)]
    with pytest.raises(StillRunning):
        execution.wait(timeout=0)


@pytest.mark.parametrize("way", STOPS.values(), ids=STOPS)
def test_an_execution_that_was_stopped_has_ended(way: Way) -> None:
    execution = tracked(recorded("j"))
    way(execution, execution.tasks.get())
    assert execution.wait(timeout=0) == "Stopped"


def test_the_api_says_what_it_did_and_does_it_once() -> None:
    program, execution = Program(token(Scope.MANAGE)), recorded("a", "b")
    its = f"/executions/{execution.pk}"
    stop_a = f"/tasks/{Task.objects.get(job_id='a').pk}/stop"
    assert [program.post(stop_a) for _ in range(2)] == [{"stopped": True}, {"stopped": False}]
    assert statuses(execution) == ("Running", {"a": "Stopped", "b": "Pending"})
    failed(execution, "b")
    assert [program.post(f"{its}/retry") for _ in range(2)] == [{"retried": 1}, {"retried": 0}]
    answer, again = (program.post(f"{its}/stop") for _ in range(2))
    assert (answer["status"], answer["counts"], answer["progress"]) == ("Stopped", {"Stopped": 2}, 1.0)
    assert again["revision"] == answer["revision"]
    assert tasks() == {"a": ("Stopped", 0, 0, ""), "b": ("Stopped", 1, 1, "tried again")}
    assert rows() == dict.fromkeys("ab", ("ended", 0))
    for path in ("/executions/7777/stop", "/executions/7777/retry", "/tasks/7777/stop"):
        program.post(path, status=404)
