"""What a run leaves at its end: its result, if its task asks for that, and the traceback of an error. And what it
says while it runs: where that is shown; test_writer.py has how it gets into the row."""

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.broker import redaction
from harbor_refresh.tasks.jobs import Handle, JobResult, TrackedExecution
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.running import kept_ends
from harbor_refresh.tasks.jobs.running.handle import Begun
from harbor_refresh.tasks.jobs.running.kept_ends import CUT, MAX_TRACEBACK
from harbor_refresh.tasks.models import Job, JobEnd
from tests.integration.admin_client import text
from tests.integration.command_output import data, said
from tests.integration.executions.api.api_client import Program
from tests.integration.jobs.sample_jobs import Outbox, Sent, beats, begun, delivered, its_process_looked, recorded
from tests.integration.jobs.test_a_run_in_its_process import TYPED, chain_of_two, got, one

pytestmark = pytest.mark.usefixtures("database", "at_once", "worker")

SECRET = "the password of the tests"


def page(admin: Client, name: str) -> str:
    """The page of the task of this job."""
    pk = Task.objects.get(job_id=name).pk
    return admin.get(f"/admin/harbor_executions/task/{pk}/change/").content.decode()


def ends() -> list[tuple[str, int, Any, str, str]]:
    """All that is kept: job, revision, result, why it was not kept, traceback."""
    fields = ("job__task__job_id", "revision", "result", "why_not", "traceback")
    return list(JobEnd.objects.order_by("pk").values_list(*fields))


def found(execution: Execution | None = None) -> list[Any]:
    pk = execution.pk if execution else Execution.objects.get().pk
    return [(one.value, one.why_not) for one in TrackedExecution.objects.get(pk=pk).results()]


def returns(value: Any) -> Any:
    return lambda job: value


def fail(job: Handle) -> None:
    raise ValueError("no such layer")


def fails(message: Sent, work: Any = fail) -> None:
    with suppress(ValueError, KeyError):
        delivered(message, work)


@pytest.mark.parametrize("value", [None, 0, "", {"layers": [1, None]}, "ä|\n", TYPED])
def test_a_result_is_kept_as_it_was_returned(value: Any, outbox: Outbox) -> None:
    delivered(one(outbox), returns(value), keep_result=True)
    assert Task.objects.get().status == "Success"
    assert found() == [(value, "")]


def test_a_result_that_is_too_large_is_not_kept_and_its_job_has_succeeded(
    outbox: Outbox, settings: Settings, admin: Client
) -> None:
    settings.REFRESH_RESULT_BYTES = 10
    for name, value in (("fits", "ääää"), ("too large", "äääää")):
        delivered(one(outbox, name), returns(value), keep_result=True)
    why = "it takes 12 bytes, and REFRESH_RESULT_BYTES is 10"
    assert ends() == [("fits", 0, "ääää", "", ""), ("too large", 0, None, why, "")]
    assert set(Task.objects.values_list("status", "status_message")) == {("Success", "")}
    assert f"It was not kept: {why}." in text(page(admin, "too large"))
    assert "ääää" in text(page(admin, "fits"))


#: What looks like a value of a type that no process knows, and a value that cannot be written.
UNKNOWN, BROKEN = {"__type__": "mystery", "__value__": 1}, SimpleNamespace(__json__=lambda: 1 / 0)
UNTEXT = ("a\x00b", "half a \ud800 pair", "x" * 2_100_000)


@pytest.mark.parametrize("value", [object(), float("nan"), *UNTEXT, [UNKNOWN], BROKEN])
def test_what_cannot_be_kept_at_all_leaves_the_reason(value: Any, outbox: Outbox) -> None:
    delivered(one(outbox), returns(value), keep_result=True)
    assert Task.objects.get().status == "Success"
    [(result, why_not)] = found()
    assert result is None
    assert why_not.startswith("it cannot be kept as JSON: ")


def test_the_result_of_a_chain_is_kept_and_handed_on(outbox: Outbox, settings: Settings) -> None:
    settings.REFRESH_RESULT_BYTES = 10
    first = chain_of_two(outbox)
    delivered(first, returns("x" * 20), keep_result=True)
    assert got(*outbox.take()) == ["x" * 20], "a chain takes more than is kept"
    why = "it takes 22 bytes, and REFRESH_RESULT_BYTES is 10"
    assert ends() == [("a", 0, None, why, "")], "b was not asked to keep its result"


@pytest.mark.usefixtures("core")
def test_over_the_hook_a_result_is_there_once_its_task_says_success(outbox: Outbox) -> None:
    delivered(one(outbox), returns(7), keep_result=True)
    task = Task.objects.get()
    assert (task.status, found(), len(ends())) == ("Pending", [], 1)
    report([Report(task.pk, "Success", ends()[0][1])])
    assert found() == [(7, "")]


@pytest.mark.parametrize("ended_as", ["Stopped", "Success", "Error"])
def test_what_a_run_leaves_is_not_kept_if_its_task_has_ended_before(
    ended_as: str, outbox: Outbox, program: Program
) -> None:
    """By a stop, or because another program has reported its end."""

    def work(job: Handle) -> int:
        report([Report(job.run.task_id, ended_as)])
        return 7

    delivered(one(outbox), work, keep_result=True)
    task = Task.objects.get()
    assert (task.status, found(), ends()) == (ended_as, [], [])
    answer = program.get(f"/tasks/{task.pk}/job")
    assert (answer["result"], answer["traceback"]) == (None, "")


@pytest.mark.usefixtures("core")
def test_over_the_hook_what_a_run_left_is_not_shown_if_its_task_ended_otherwise(
    outbox: Outbox, program: Program
) -> None:
    fails(one(outbox, "fails"))
    delivered(one(outbox, "succeeds"), returns(7), keep_result=True)
    revisions = {job: revision for job, revision, *_ in ends()}
    for name, status in (("fails", "Success"), ("succeeds", "Error")):
        pk = Task.objects.get(job_id=name).pk
        report([Report(pk, status, revisions[name])])
        answer = program.get(f"/tasks/{pk}/job")
        assert (answer["status"], answer["result"], answer["traceback"]) == (status, None, "")


def test_a_job_that_runs_again_has_no_end_until_that_run_has_one(outbox: Outbox, program: Program) -> None:
    fails(one(outbox))
    task = Task.objects.get()
    assert program.get(f"/tasks/{task.pk}/job")["traceback"].endswith("ValueError: no such layer\n")
    retry_failed(task.execution_id)
    assert program.get(f"/tasks/{task.pk}/job")["traceback"] == ""
    delivered(*outbox.take(), returns(7), keep_result=True)
    assert found() == [(7, "")]
    assert ends() == [("a", 1, 7, "", "")]


def test_of_several_ends_of_a_job_that_of_its_last_run_stays_and_of_one_run_the_first(outbox: Outbox) -> None:
    def end(its: Begun | None, status: Status, value: str) -> None:
        assert its
        kept = JobEnd(traceback=value) if status == Status.ERROR else JobEnd(result=int(value))
        take([Outcome(its.run, status, result=value, kept=kept)])

    first = begun(one(outbox), node=this_worker.id)
    end(first, Status.ERROR, "1")
    task = Task.objects.get()
    report([Report(task.pk, "Error", Job.objects.get().revision)])
    retry_failed(task.execution_id)
    second = begun(*outbox.take(), node=this_worker.id)
    for run, value in ((first, "1"), (second, "2"), (second, "3"), (first, "1")):
        end(run, Status.SUCCESS, value)
    its = Job.objects.get()
    assert ends() == [("a", its.revision, 2, "", "")]
    assert (its.result, its.result_revision) == (2, its.revision)


def test_results_come_in_the_order_of_the_jobs_and_in_pages(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_ends, "PAGE", 2)
    names = ["c", "a", "d", "b", "e"]
    execution = recorded(*names, meta={"layer": 7})
    for message in reversed(outbox.take()):
        work = fail if message.job == "d" else returns(message.job)
        with suppress(ValueError):
            delivered(message, work, keep_result=True)
    delivered(one(outbox, "of another one"), returns("no"), keep_result=True)
    tasks = dict(Task.objects.values_list("job_id", "pk"))
    expected = [JobResult(tasks[name], "a.job", name, meta={"layer": 7}) for name in names if name != "d"]
    with CaptureQueriesContext(connection) as captured:
        assert list(kept_ends.results(execution.pk)) == expected
    assert len(captured) == 3


def test_a_traceback_begins_in_the_code_of_the_job_and_names_its_cause(outbox: Outbox) -> None:
    def work(job: Handle) -> None:
        try:
            json.loads("{")
        except ValueError as exc:
            raise KeyError("layer") from exc

    fails(one(outbox), work)
    [(_, _, _, _, told)] = ends()
    assert told.startswith("Traceback (most recent call last):\n")
    assert "tracked.py" not in told
    assert "JSONDecodeError" in told
    assert told.endswith("KeyError: 'layer'\n")


def test_a_long_traceback_keeps_its_end(outbox: Outbox) -> None:
    def work(job: Handle) -> None:
        raise ValueError("x" * 10_000 + " the end")

    fails(one(outbox), work)
    [(*_, told)] = ends()
    assert len(told) == MAX_TRACEBACK
    assert told.startswith(CUT + "x")
    assert told.endswith("x the end\n")


@pytest.fixture
def secrets(settings: Settings) -> Any:
    settings.REFRESH_HARBOR_SECRET = SECRET
    settings.SECRET_KEY_FALLBACKS = ["the key of last year"]
    settings.HARBOR_REFRESH = {"REDIS_URL": "redis://:word-of-the-project@redis/0"}
    redaction._known.cache_clear()
    yield
    redaction._known.cache_clear()


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    "said",
    [
        "{hidden}",
        "postgresql://me:{hidden}@db/x refused",
        "word-of-the-project",
        "signed with the key of last year",
        "password={hidden}",
        "Authorization: Bearer {hidden}",
        SECRET + "x" * MAX_TRACEBACK,
        SECRET + "x" * (MAX_TRACEBACK - 40),  # the cut is within it
    ],
)
def test_a_traceback_holds_no_secret(said: str, outbox: Outbox) -> None:
    hidden = SECRET if said == "{hidden}" else "hidden-word"

    def work(job: Handle) -> None:
        raise ValueError(said.format(hidden=hidden))

    fails(one(outbox), work)
    [(*_, told)] = ends()
    for word in (hidden, SECRET, SECRET[-12:], "word-of-the-project", "the key of last year"):
        assert word not in told
    assert "ValueError" in told or told.startswith(CUT)


def test_the_api_lists_the_results_of_an_execution(outbox: Outbox, program: Program) -> None:
    execution = recorded(*"abc")
    for message in outbox.take():
        delivered(message, returns({"name": message.job}), keep_result=True)
    a, b, c = execution.tasks.order_by("pk").values_list("pk", flat=True)

    def shown(pk: int, name: str) -> dict[str, Any]:
        return {"task_id": pk, "name": "a.job", "value": {"name": name}, "why_not": ""}

    page = program.get(f"/executions/{execution.pk}/results?limit=2")
    assert page == {"items": [shown(a, "a"), shown(b, "b")], "next": str(b)}
    rest = program.get(f"/executions/{execution.pk}/results?limit=2&cursor={b}")
    assert rest == {"items": [shown(c, "c")], "next": None}
    assert program.get(f"/tasks/{a}/job") == {
        "task_id": a,
        "name": "a.job",
        "status": "Success",
        "check_in": None,
        "result": shown(a, "a"),
        "traceback": "",
    }
    program.get("/executions/7777/results", status=404)


def test_the_page_of_a_task_folds_its_traceback(outbox: Outbox, admin: Client) -> None:
    def work(job: Handle) -> None:
        raise ValueError("<no such layer>")

    fails(one(outbox), work)
    shown = page(admin, "a")
    folded = shown[shown.index("<details") : shown.index("</details>")]
    assert "Show the traceback" in folded
    assert "ValueError: &lt;no such layer&gt;" in folded


# check-ins


BAR = '<progress value="3" max="7" aria-label="Progress of the job"></progress>'
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAID = {"message": "layer <3>", "done": 3, "of": 7}
NO_NUMBERS = {"message": "layer 4", "done": None, "of": None}


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


def test_a_check_in_of_an_earlier_run_changes_nothing(execution: Execution) -> None:
    pk = task("a").pk
    assert heard(pk, None) == [pk]
    assert heard(pk, NO_NUMBERS, number=2) == []
    assert data("harbor", "show", "--running", execution.pk)["running"][0]["message"] == SAID["message"]


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
