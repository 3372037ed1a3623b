"""What a run leaves at its end: its result, if its task asks for that, and the traceback of an error."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.broker import redaction
from harbor_refresh.tasks.jobs import Handle, JobResult, TrackedExecution
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.nodes import this_worker
from harbor_refresh.tasks.jobs.outcomes import Begun, Outcome, take
from harbor_refresh.tasks.jobs.running import kept_ends
from harbor_refresh.tasks.jobs.running.kept_ends import CUT, MAX_TRACEBACK, Kept
from harbor_refresh.tasks.models import Job, JobEnd
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.report_receiver import Target
from tests.integration.jobs.sample_jobs import Outbox, Sent, beats, begun, delivered, recorded
from tests.integration.jobs.test_a_run_in_its_process import TYPED, chain_of_two, got, one
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database", "at_once")

SECRET = "the password of the tests"


@pytest.fixture(autouse=True)
def worker(database: str) -> None:
    """This process is a worker."""
    beats(this_worker.id)


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(Scope.READ))


def page(admin: Client, name: str) -> str:
    """The page of the task of this job."""
    pk = Task.objects.get(job_id=name).pk
    return admin.get(f"/admin/harbor_executions/task/{pk}/change/").content.decode()


def text(page: str) -> str:
    """What a person reads on it."""
    return " ".join(re.sub(r"<[^>]+>", " ", page.partition("<main")[2] or page).split())


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


def test_without_being_asked_nothing_is_kept_and_the_end_costs_no_statement_more(outbox: Outbox) -> None:
    costs = {}
    for asked in (False, True):
        message = one(outbox, f"job {asked}")
        with CaptureQueriesContext(connection) as captured:
            delivered(message, returns(7), keep_result=asked)
        costs[asked] = [query["sql"] for query in captured]
    assert [sql for sql in costs[False] if "execution_job_end" in sql] == []
    assert len([sql for sql in costs[True] if "execution_job_end" in sql]) == 1
    assert len(costs[True]) == len(costs[False]) + 1
    assert ends() == [("job True", 0, 7, "", "")]


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


@pytest.mark.parametrize("value", [object(), float("nan"), "a\x00b", "half a \ud800 pair", "x" * 2_100_000])
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
    assert ends() == [("a", 0, None, "it takes 22 bytes, and REFRESH_RESULT_BYTES is 10", "")]


@pytest.mark.usefixtures("core")
def test_over_the_hook_a_result_is_there_once_its_task_says_success(outbox: Outbox, core: Target) -> None:
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


@pytest.mark.parametrize("reports_to", ["rows", "core"])
def test_of_several_ends_of_a_job_that_of_its_last_run_stays_and_of_one_run_the_first(
    reports_to: str, outbox: Outbox, request: pytest.FixtureRequest
) -> None:
    if reports_to == "core":
        request.getfixturevalue("core")

    def end(its: Begun | None, status: Status, value: str) -> None:
        assert its
        kept = Kept(traceback=value) if status == Status.ERROR else Kept(int(value))
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
    execution = recorded(*names)
    for message in reversed(outbox.take()):
        work = fail if message.job == "d" else returns(message.job)
        with suppress(ValueError):
            delivered(message, work, keep_result=True)
    delivered(one(outbox, "of another one"), returns("no"), keep_result=True)
    tasks = dict(Task.objects.values_list("job_id", "pk"))
    expected = [JobResult(tasks[name], "a.job", name) for name in names if name != "d"]
    with CaptureQueriesContext(connection) as captured:
        assert list(kept_ends.results(execution.pk)) == expected
    assert len(captured) == 3


def test_a_result_has_the_metadata_of_its_job(outbox: Outbox) -> None:
    delivered(one(outbox, meta={"layer": 7}), returns(1), keep_result=True)
    assert [one.meta for one in kept_ends.results(Execution.objects.get().pk)] == [{"layer": 7}]


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
    for word in (hidden, SECRET, SECRET[-12:], "word-of-the-project"):
        assert word not in told
    assert "ValueError" in told or told.startswith(CUT)


def test_a_traceback_that_cannot_be_written_ends_the_job_anyway(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> str:
        raise RuntimeError("no words")

    monkeypatch.setattr("harbor_refresh.tasks.jobs.running.kept_ends.redacted", broken)
    fails(one(outbox))
    assert (Task.objects.get().status, ends()) == ("Error", [])


def test_a_result_is_deleted_with_its_execution(outbox: Outbox) -> None:
    delivered(one(outbox), returns(7), keep_result=True)
    execution = Execution.objects.get()
    refresh([execution.pk])
    delete([execution.pk])
    assert ends() == []


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
