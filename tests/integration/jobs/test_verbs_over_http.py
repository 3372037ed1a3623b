"""Stop and retry over HTTP: they act on the tasks, and with them on their jobs."""

import pytest

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.stops import stop_task
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs.stops import stop_job_of
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, recorded, rows, stands, statuses, tasks

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(Scope.MANAGE))


@pytest.fixture
def execution(outbox: Outbox) -> Execution:
    """One of its jobs runs, and one waits for a worker."""
    beats()
    execution = recorded("runs", "waits")
    assert begun(outbox.take()[0])
    return execution


def test_an_execution_is_stopped_with_its_jobs(program: Program, execution: Execution) -> None:
    answer = program.post(f"/executions/{execution.pk}/stop")
    assert (answer["status"], answer["counts"], answer["progress"]) == ("Stopped", {"Stopped": 2}, 1.0)
    assert tasks() == dict.fromkeys(["runs", "waits"], ("Stopped", 0, 0, ""))
    assert rows() == {"runs": ("ended", 1), "waits": ("ended", 0)}
    assert program.post(f"/executions/{execution.pk}/stop")["revision"] == answer["revision"]
    program.post("/executions/7777/stop", status=404)


def test_one_task_is_stopped_with_its_job(program: Program, execution: Execution) -> None:
    path = f"/tasks/{Task.objects.get(job_id='runs').pk}/stop"
    assert program.post(path) == {"stopped": True}
    assert rows() == {"runs": ("ended", 1), "waits": ("sent", 0)}
    assert program.post(path) == {"stopped": False}
    program.post("/tasks/7777/stop", status=404)
    assert statuses(execution) == ("Running", {"runs": "Stopped", "waits": "Pending"})


def test_the_last_task_that_stops_ends_its_execution_even_in_quarantine(program: Program, outbox: Outbox) -> None:
    execution = recorded("only")
    quarantine([execution.pk], 5)
    assert stop_job_of(Task.objects.get().pk)
    execution.refresh_from_db()
    assert (execution.status, hasattr(execution, "quarantine")) == ("Stopped", False)


def test_a_task_that_runs_again_is_stopped_in_its_latest_run(program: Program, outbox: Outbox) -> None:
    recorded("again")
    stands("again", "Running", 3, 3)
    assert stop_task(Task.objects.get().pk)
    assert Task.objects.values_list("status", "status_revision").get() == ("Stopped", 3)


def test_failed_jobs_are_tried_again(program: Program, outbox: Outbox) -> None:
    execution = recorded("failed", "fine")
    stands("failed", "Error", 1, 1)
    stands("fine", "Success", 1, 1)
    outbox.take()
    path = f"/executions/{execution.pk}/retry"
    assert program.post(path) == {"retried": 1}
    assert [message.job for message in outbox.take()] == ["failed"]
    assert program.post(path) == {"retried": 0}
    program.post("/executions/7777/retry", status=404)
