"""What Harbor owns is refused, at whichever source, before anything is written."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from redis import Redis

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.errors import OwnedByHarbor
from harbor_refresh.executions.lifecycle import creation, deletion, gates, reports, stops
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.executions.news.audit import Origin, Person, Word
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import again
from harbor_refresh.tasks.jobs.starting import job_rows
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.operations import bulk
from tests.harbor.rows import asked
from tests.harbor.samples import everything, execution, stored
from tests.integration.admin_client import told
from tests.integration.command_output import failing, said
from tests.integration.executions.api.api_client import Program, token
from tests.integration.executions.hook_requests import SECRET, post, wire

pytestmark = pytest.mark.usefixtures("database")

USE_CASES: dict[str, Callable[[int], Any]] = {
    "create": lambda pk: creation.create(NewExecution("REPLICATION")),
    "add tasks": lambda pk: creation.add_tasks(pk, [NewTask()]),
    "create an open one": lambda pk: creation.create(NewExecution("REPLICATION", open_seconds=5)),
    "add jobs": lambda pk: job_rows.add(pk, [[NewJob("a.job")]]),
    "close": gates.close,
    "report": lambda pk: reports.report([Report(1, "Success", 1)]),
    "stop": stops.stop,
    "stop a task": lambda pk: stops.stop_task(1),
    "finish": lambda pk: stops.finish(pk, Status.SUCCESS),
    "delete one that has ended": deletion.delete_ended,
    "delete those that have ended": lambda pk: deletion.delete_many_ended([pk]),
    "delete in the sweep": lambda pk: deletion.delete_final([pk]),
    "retry": again.retry_failed,
    "resume": again.resume_stopped,
    "run a job again": lambda pk: again.run_job_again(1),
    **{
        f"{verb} many": lambda pk, verb=verb: bulk.ask(verb, Filter(ids=(pk,)), Person("a person", Origin.API))
        for verb in map(Word, bulk.VERBS)
    },
}


@pytest.mark.parametrize("name", USE_CASES)
def test_a_use_case_that_writes_what_harbor_owns_is_refused(name: str) -> None:
    pk = execution("Running", None, "Running")
    before = everything()
    with pytest.raises(OwnedByHarbor, match=r"^Harbor owns executions and tasks here: "):
        USE_CASES[name](pk)
    assert everything() == before
    assert not AuditEntry.objects.exists()


def test_a_refresh_of_many_is_typed(redis: Redis, admin: Client) -> None:
    pks = [execution("Running", None, "Success") for _ in range(3)]
    refused = Program(token(*Scope)).send("POST", "/executions/refresh", {"all": True})
    assert "type manage.py harbor repair refresh" in json.loads(refused.content)["detail"]
    form = {"action": "refresh", "select_across": 1, "confirmed": "yes", "_selected_action": pks[0], "index": 0}
    shown = told(admin.post(reverse("admin:harbor_executions_execution_changelist"), form))
    assert "type manage.py harbor repair refresh" in shown[0]
    assert (
        said("harbor", "repair", "refresh", "--all", "--yes")
        == "3 executions refreshed, 0 left as they are, 0 failed."
    )
    assert {stored()[pk].status for pk in pks} == {"Success"}


PROBLEM = {"type": "urn:harbor-refresh:owned-by-harbor", "title": "Harbor does this", "status": 403}
REQUESTS: dict[tuple[str, str], Any] = {
    ("POST", "/executions"): {"vendor_type": "REPLICATION"},
    ("POST", "/executions/{execution}/tasks"): {"tasks": [{}]},
    ("POST", "/executions/{execution}/finish"): {"status": "Success"},
    ("POST", "/executions/{execution}/stop"): None,
    ("POST", "/executions/{execution}/retry"): None,
    ("DELETE", "/executions/{execution}"): None,
    ("POST", "/tasks/{task}/stop"): None,
    ("POST", "/tasks/{task}/retry"): None,
    ("POST", "/tasks/{task}/report"): {"status": "Success", "revision": 1},
    ("POST", "/reports"): {"reports": [{"task_id": 1, "status": "Success", "revision": 1}]},
    ("POST", "/executions/stop"): {"all": True},
    ("POST", "/executions/refresh"): {"all": True},
}


def test_the_api_answers_one_problem_of_its_own_type(redis: Redis) -> None:
    """And it writes nothing, no entry in the log of actions either."""
    pk = execution("Running", None, "Running")
    ((task,),) = asked("SELECT id FROM task")
    program = Program(token(*Scope))
    before = everything()
    answers = {
        (method, path): program.send(method, path.format(execution=pk, task=task), body)
        for (method, path), body in REQUESTS.items()
    }
    problems = {request: json.loads(answer.content) for request, answer in answers.items()}
    details = {request: problem.pop("detail") for request, problem in problems.items()}
    assert problems == dict.fromkeys(REQUESTS, PROBLEM)
    assert {answer["Content-Type"] for answer in answers.values()} == {"application/problem+json"}
    assert all(one.startswith("Harbor owns executions and tasks here: ") for one in details.values())
    assert "PUT /api/v2.0/" in details["POST", "/executions/stop"]
    assert everything() == before
    assert not AuditEntry.objects.exists()


def test_the_hook_is_left_to_harbors_core(settings: Settings) -> None:
    settings.REFRESH_HARBOR_SECRET = SECRET
    execution("Running", None, "Running")
    before = everything()
    for body in (wire("abc", "Success"), wire("abc", check_in="half")):
        answer = post(body, 1)
        problem = json.loads(answer.content)
        assert "/service/notifications/tasks/ID" in problem.pop("detail")
        assert problem == PROBLEM
    assert everything() == before


def test_a_command_fails_with_the_sentence(redis: Redis) -> None:
    execution("Success", None, "Success")
    for words in (
        ("harbor", "sweep"),
        ("harbor", "stop", "--all", "--yes"),
        ("harbor", "delete", "--all", "--yes"),
    ):
        assert failing(*words)[1].startswith("Harbor owns executions and tasks here: "), words


def page(admin: Client, name: str, *args: int) -> str:
    return admin.get(reverse(f"admin:harbor_executions_{name}", args=args)).content.decode()


def test_the_admin_shows_no_button_that_is_harbors(redis: Redis, admin: Client) -> None:
    running, ended = execution("Running", None, "Running"), execution("Success", None, "Success")
    rows = page(admin, "execution_changelist")
    assert 'value="refresh"' in rows
    assert [one for one in ("stop", "retry", "resume", "remove") if f'value="{one}"' in rows] == []
    for pk in (running, ended):
        one = page(admin, "execution_change", pk)
        assert f"/{pk}/refresh" in one
        assert [path for path in ("stop", "retry", "resume", "remove") if f"/{pk}/{path}" in one] == []
    ((task,), _) = asked("SELECT id FROM task ORDER BY id")
    assert f"/{task}/stop" not in page(admin, "task_change", task)


def test_a_request_for_an_action_that_is_harbors_is_refused(redis: Redis, admin: Client) -> None:
    pk = execution("Running", None, "Running")
    ((task,),) = asked("SELECT id FROM task")
    before = everything()
    for model, row in (("execution", pk), ("task", task)):
        address = reverse(f"admin:harbor_executions_{model}_stop", args=[row])
        assert admin.post(address, {"confirmed": "yes"}).status_code == 403
    assert everything() == before
