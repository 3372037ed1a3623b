"""Stop and retry over HTTP: they act on the tasks, and on the jobs in progress."""

import pytest

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.stops import stop_task
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_job_of
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.sample_jobs import Outbox, known, record, recorded, stands, state, write
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "nodes")


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(Scope.MANAGE))


def test_an_execution_is_stopped_and_its_running_jobs_are_asked(
    program: Program, redis: Redis, outbox: Outbox
) -> None:
    execution = recorded("runs", "waits")
    write(redis, record("runs", node="live"))
    answer = program.post(f"/executions/{execution.pk}/stop")
    assert (answer["status"], answer["counts"], answer["progress"]) == ("Stopped", {"Stopped": 2}, 1.0)
    stopped = dict.fromkeys(["runs", "waits"], ("Stopped", 0, 0, ""))
    assert known(redis) == state(stopped, [record("runs", node="live", asked=True)])
    assert program.post(f"/executions/{execution.pk}/stop")["revision"] == answer["revision"]
    program.post("/executions/7777/stop", status=404)


def test_one_task_is_stopped_and_its_job_is_asked(program: Program, redis: Redis, outbox: Outbox) -> None:
    execution = recorded("runs", "waits")
    write(redis, record("runs", node="live"))
    task = Task.objects.get(job_id="runs")
    path = f"/tasks/{task.pk}/stop"
    assert program.post(path) == {"stopped": True}
    of_jobs = {"runs": ("Stopped", 0, 0, ""), "waits": ("Pending", 0, 0, "")}
    assert known(redis) == state(of_jobs, [record("runs", node="live", asked=True)])
    assert program.post(path) == {"stopped": False}
    program.post("/tasks/7777/stop", status=404)
    execution.refresh_from_db()
    assert execution.status == "Running"


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


def test_failed_jobs_are_tried_again(program: Program, redis: Redis, outbox: Outbox) -> None:
    execution = recorded("failed", "fine")
    stands("failed", "Error", 1, 1)
    stands("fine", "Success", 1, 1)
    outbox.taken()
    path = f"/executions/{execution.pk}/retry"
    assert program.post(path) == {"retried": 1}
    assert [job for job, _, _ in outbox.taken()] == ["failed"]
    assert program.post(path) == {"retried": 0}
    program.post("/executions/7777/retry", status=404)
