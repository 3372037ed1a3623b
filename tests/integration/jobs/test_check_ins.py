"""What a job says while it runs: where it is shown. test_writer.py has how it gets into the row."""

import json
import re
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.database import run
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from tests.integration.command_output import data, said
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, its_process_looked, job, recorded

pytestmark = pytest.mark.usefixtures("database")

BAR = '<progress value="3" max="7" aria-label="Progress of the job"></progress>'
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAID = {"message": "layer <3>", "done": 3, "of": 7}
NO_NUMBERS = {"message": "layer 4", "done": None, "of": None}


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(Scope.READ))


@pytest.fixture
def execution(outbox: Outbox) -> Execution:
    """Its jobs a and b run and have checked in; `silent` runs, and `waits` waits."""
    beats()
    recorded("of another one")
    its = recorded("a", "b", "silent", "waits")
    found = {message.job: message for message in outbox.take()}
    for name, check_in in (("of another one", SAID), ("a", SAID), ("b", NO_NUMBERS), ("silent", None)):
        given = begun(found[name])
        assert given
        take([Outcome(given.run, Status.RUNNING)])
        heard(given.run.task_id, check_in)
    return its


def heard(task_id: int, check_in: dict[str, object] | None, number: int = 1) -> list[int]:
    """The process of this run has written this. Returns whether the run stands."""
    return its_process_looked(task_id, check_in and json.dumps(check_in), number=number)


def task(name: str) -> Task:
    return Task.objects.get(job_id=name)


def text(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.partition("<main")[2] or page).split())


def test_a_check_in_of_an_earlier_run_changes_nothing(execution: Execution) -> None:
    pk = task("a").pk
    assert heard(pk, None) == [pk]
    assert heard(pk, NO_NUMBERS, number=2) == []
    assert data("harbor", "show", "--running", execution.pk)["running"][0]["message"] == SAID["message"]


@pytest.mark.parametrize("numbers", [[0, 1], [1, 0]])
def test_nor_does_it_if_one_process_has_both_runs(numbers: list[int], execution: Execution) -> None:
    its = job("a")
    texts = {0: NO_NUMBERS, 1: {"message": "layer 5", "done": None, "of": None}}
    standing = run(
        "look_at_runs",
        task_ids=[its.pk, its.pk],
        runs=numbers,
        process=its.process,
        are_heard=[True, True],
        check_ins=[json.dumps(texts[number]) for number in numbers],
        node=its.node,
        begun=[],
    )
    assert [number for pk, number in standing if pk == its.pk] == [1]
    assert job("a").check_in == texts[1]


def test_the_page_of_a_task_shows_a_bar_for_numbers_alone(admin: Client, execution: Execution) -> None:
    def page(name: str) -> str:
        return admin.get(f"/admin/harbor_executions/task/{task(name).pk}/change/").content.decode()

    assert page("a").count(BAR) == 1
    assert "3 of 7" in text(page("a"))
    assert "ago: layer &lt;3&gt;" in page("a")
    assert "<progress" not in page("b")
    assert "ago: layer 4" in page("b")


def test_the_page_of_an_execution_shows_its_running_jobs_with_their_bars(
    admin: Client, execution: Execution
) -> None:
    address = f"/admin/harbor_executions/execution/{execution.pk}/running/"
    whole = admin.get(f"/admin/harbor_executions/execution/{execution.pk}/change/").content.decode()
    assert f'data-live="{address}"' in whole
    part = admin.get(address).json()["parts"]["running"]
    assert part.count("<progress") == part.count(BAR) == 1
    shown = text(part)
    assert re.search(rf"{task('a').pk} a\.job 3 of 7 \d+ s ago: layer &lt;3&gt;", shown)
    assert re.search(rf"{task('b').pk} a\.job - \d+ s ago: layer 4", shown)
    assert shown.count("a.job") == 3
    Task.objects.filter(execution=execution).update(status=Status.STOPPED, status_code=3, end_time=NOW)
    assert admin.get(address).json()["parts"]["running"].strip() == "<p>No job runs now.</p>"


def test_the_api_tells_of_each_job_what_its_run_said(program: Program, execution: Execution) -> None:
    def shown(name: str, status: str, check_in: object) -> dict[str, object]:
        return {"task_id": task(name).pk, "name": "a.job", "status": status, "check_in": check_in}

    page = program.get(f"/executions/{execution.pk}/jobs?limit=3")
    assert page["next"] == str(task("silent").pk)
    assert all(one["check_in"].pop("at") for one in page["items"][:2])
    assert page["items"] == [
        shown("a", "Running", SAID | {"progress": 3 / 7}),
        shown("b", "Running", NO_NUMBERS | {"progress": None}),
        shown("silent", "Running", None),
    ]
    rest = program.get(f"/executions/{execution.pk}/jobs?limit=3&cursor={page['next']}")
    assert rest == {"items": [shown("waits", "Pending", None)], "next": None}
    assert program.get(f"/tasks/{task('a').pk}/job")["check_in"]["done"] == 3
    program.get("/executions/7777/jobs", status=404)
    program.get("/tasks/7777/job", status=404)


def test_a_page_of_jobs_costs_as_many_statements_for_forty_as_for_one(program: Program, outbox: Outbox) -> None:
    beats()
    costs = []
    for count in (1, 40):
        execution = recorded(*(f"job {number} of {count}" for number in range(count)))
        for message in outbox.take():
            assert begun(message)
            heard(message.task_id, SAID)
        program.get(f"/executions/{execution.pk}/jobs")
        with CaptureQueriesContext(connection) as captured:
            assert len(program.get(f"/executions/{execution.pk}/jobs")["items"]) == count
        costs.append(len(captured))
    assert costs[0] == costs[1]


def test_the_command_lists_the_jobs_that_run(execution: Execution) -> None:
    found = data("harbor", "show", "--running", execution.pk)["running"]
    assert all(0 <= one.pop("seconds_ago") < 60 for one in found)
    silent = {"message": "", "done": None, "of": None}
    assert found == [
        {"task_id": task(name).pk, "name": "a.job"} | check_in
        for name, check_in in (("a", SAID), ("b", NO_NUMBERS), ("silent", silent))
    ]
    shown = said("harbor", "show", "--running", execution.pk).splitlines()
    assert shown[1].split()[:7] == [str(task("a").pk), "a.job", "3", "of", "7", "layer", "<3>"]
    Task.objects.filter(execution=execution).update(status=Status.STOPPED, status_code=3, end_time=NOW)
    assert said("harbor", "show", "--running", execution.pk).strip() == "No job runs now."
