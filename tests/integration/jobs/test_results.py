"""What a run leaves at its end: its result, if its task asks for that, and the traceback of an error."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks import redaction
from harbor_refresh.tasks.jobs import Handle, JobResult, TrackedExecution
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle import kept_ends
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from harbor_refresh.tasks.jobs.records.attachments import contents_of
from harbor_refresh.tasks.jobs.records.kept import CUT, MAX_TRACEBACK, Kept
from harbor_refresh.tasks.jobs.records.records import JobRecords, job_records
from harbor_refresh.tasks.jobs.repair.reaper import reap
from harbor_refresh.tasks.models import JobEnd
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.hook_target import Target
from tests.integration.jobs.sample_jobs import Outbox, known
from tests.integration.jobs.test_a_run_in_its_process import TYPED, chain_of_two, delivered, one
from tests.integration.jobs.test_jobs_in_the_admin import page_of_task, text
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "clock")

SECRET = "the password of the tests"


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


def run_and_fail(outbox: Outbox) -> None:
    with suppress(ValueError):
        delivered(one(outbox), fail)


@pytest.mark.parametrize("value", [None, 0, "", {"layers": [1, None]}, "ä|\n", TYPED])
def test_a_result_is_kept_as_it_was_returned(value: Any, outbox: Outbox, reports: list[JobReport]) -> None:
    delivered(one(outbox), returns(value), keep_result=True)
    deliver_and_publish(reports)
    assert Task.objects.get().status == "Success"
    assert found() == [(value, "")]


def test_without_being_asked_nothing_is_kept_and_the_end_costs_no_statement_more(
    outbox: Outbox, reports: list[JobReport]
) -> None:
    costs = {}
    for asked in (False, True):
        delivered(one(outbox, f"job {asked}"), returns(7), keep_result=asked)
        with CaptureQueriesContext(connection) as captured:
            deliver_and_publish(reports)
        costs[asked] = [query["sql"] for query in captured]
        reports.clear()
    assert [sql for sql in costs[False] if "execution_job_end" in sql] == []
    assert len([sql for sql in costs[True] if "execution_job_end" in sql]) == 1
    assert len(costs[True]) == len(costs[False]) + 1
    assert ends() == [("job True", 0, 7, "", "")]


def test_a_result_that_is_too_large_is_not_kept_and_its_job_has_succeeded(
    outbox: Outbox, reports: list[JobReport], settings: Settings, admin: Client
) -> None:
    settings.REFRESH_RESULT_BYTES = 10
    for name, value in (("fits", "ääää"), ("too large", "äääää")):
        delivered(one(outbox, name), returns(value), keep_result=True)
    deliver_and_publish(reports)
    why = "it takes 12 bytes, and REFRESH_RESULT_BYTES is 10"
    assert ends() == [("fits", 0, "ääää", "", ""), ("too large", 0, None, why, "")]
    assert set(Task.objects.values_list("status", "status_message")) == {("Success", "")}
    assert f"It was not kept: {why}." in text(admin, page_of_task("too large"))
    assert "ääää" in text(admin, page_of_task("fits"))


@pytest.mark.parametrize("value", [object(), float("nan"), "a\x00b", "half a \ud800 pair", "x" * 2_100_000])
def test_what_cannot_be_kept_at_all_leaves_the_reason(
    value: Any, outbox: Outbox, reports: list[JobReport]
) -> None:
    delivered(one(outbox), returns(value), keep_result=True)
    deliver_and_publish(reports)
    assert Task.objects.get().status == "Success"
    [(result, why_not)] = found()
    assert result is None
    assert why_not.startswith("it cannot be kept as JSON: ")


def test_the_result_of_a_chain_is_kept_and_handed_on(
    redis: Redis, outbox: Outbox, reports: list[JobReport], settings: Settings
) -> None:
    settings.REFRESH_RESULT_BYTES = 10
    first = chain_of_two(outbox)
    delivered(first, returns("x" * 20), keep_result=True)
    deliver_and_publish(reports)
    assert [message.args for message in outbox.messages] == [["x" * 20]], "a chain takes more than is kept"
    assert ends() == [("a", 0, None, "it takes 22 bytes, and REFRESH_RESULT_BYTES is 10", "")]


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_process_that_dies_before_its_report_loses_neither_result_nor_traceback(
    is_followed: bool, redis: Redis, outbox: Outbox, reports: list[JobReport]
) -> None:
    delivered(chain_of_two(outbox) if is_followed else one(outbox), returns({"a": 1}), keep_result=True)
    with suppress(ValueError):
        delivered(one(outbox, "fails"), fail)
    told = [one for one in reports if one.status != "Running"]
    kept = [contents_of(job_records().of([one.job])[one.job]).kept for one in told]
    assert kept == [one.kept for one in told]
    reap()
    outcome = [(job, result) for job, _, result, _, _ in ends()]
    assert outcome == [("a", {"a": 1}), ("fails", None)]
    assert JobEnd.objects.get(job__task__job_id="fails").traceback.endswith("ValueError: no such layer\n")
    assert known(redis)["records"] == {}
    statuses = dict(Task.objects.values_list("job_id", "status_message"))
    assert statuses["fails"] == "ValueError: no such layer"
    if is_followed:
        assert [message.args for message in outbox.messages] == [[{"a": 1}]]
    before = ends()
    deliver_and_publish(reports)
    assert ends() == before, "the process was alive after all"


@pytest.mark.usefixtures("core")
def test_over_the_hook_a_result_is_there_once_its_task_says_success(
    outbox: Outbox, reports: list[JobReport], core: Target
) -> None:
    delivered(one(outbox), returns(7), keep_result=True)
    deliver_and_publish(reports)
    task = Task.objects.get()
    assert (task.status, found(), len(ends())) == ("Pending", [], 1)
    report([Report(task.pk, "Success", reports[-1].revision)])
    assert found() == [(7, "")]


def test_the_result_of_a_run_that_was_stopped_meanwhile_is_not_shown(
    outbox: Outbox, reports: list[JobReport], program: Program
) -> None:
    delivered(one(outbox), returns(7), keep_result=True)
    stop(Execution.objects.get().pk)
    deliver_and_publish(reports)
    task = Task.objects.get()
    assert (task.status, found()) == ("Stopped", [])
    assert program.get(f"/tasks/{task.pk}/job")["result"] is None


def test_what_a_run_left_is_not_shown_if_its_task_ended_otherwise(
    outbox: Outbox, reports: list[JobReport], program: Program
) -> None:
    """Another program has reported another end of the same run before."""
    with suppress(ValueError):
        delivered(one(outbox, "fails"), fail)
    delivered(one(outbox, "succeeds"), returns(7), keep_result=True)
    other_ends = {"fails": "Success", "succeeds": "Error"}
    tasks = dict(Task.objects.values_list("job_id", "pk"))
    report([Report(tasks[job], status) for job, status in other_ends.items()])
    deliver_and_publish(reports)
    assert dict(Task.objects.values_list("job_id", "status")) == other_ends
    assert len(ends()) == 2
    for pk in tasks.values():
        answer = program.get(f"/tasks/{pk}/job")
        assert (answer["result"], answer["traceback"]) == (None, "")


def test_a_job_that_runs_again_has_no_end_until_that_run_has_one(
    outbox: Outbox, reports: list[JobReport], program: Program
) -> None:
    run_and_fail(outbox)
    deliver_and_publish(reports)
    reports.clear()
    task = Task.objects.get()
    assert program.get(f"/tasks/{task.pk}/job")["traceback"].endswith("ValueError: no such layer\n")
    retry_failed(task.execution_id)
    assert program.get(f"/tasks/{task.pk}/job")["traceback"] == ""
    delivered(outbox.messages.pop(), returns(7), keep_result=True)
    deliver_and_publish(reports)
    assert found() == [(7, "")]
    assert ends() == [("a", 1, 7, "", "")]


def test_a_later_run_that_keeps_nothing_leaves_no_older_result_in_sight(
    outbox: Outbox, reports: list[JobReport]
) -> None:
    delivered(one(outbox), returns(7), keep_result=True)
    deliver_and_publish(reports)
    report([Report(Task.objects.get().pk, "Success", 5)])
    assert (found(), len(ends())) == ([], 1)


def test_the_end_of_an_earlier_run_replaces_nothing(outbox: Outbox, reports: list[JobReport]) -> None:
    delivered(one(outbox), returns(1), keep_result=True)
    late = reports[-1]
    deliver_and_publish([replace(late, revision=3, kept=Kept(3))])
    kept_ends.keep_ends([late, replace(late, revision=3, kept=Kept("again"))])
    assert ends() == [("a", 3, 3, "", "")]
    kept_ends.keep_ends([replace(late, revision=5, kept=Kept(5)), replace(late, revision=4, kept=Kept(4))])
    assert ends() == [("a", 5, 5, "", "")]


def test_results_come_in_the_order_of_the_jobs_and_in_pages(
    outbox: Outbox, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_ends, "PAGE", 2)
    names = ["c", "a", "d", "b", "e"]
    execution = start("SCAN", [[NewJob("a.job", job_id=name)] for name in names]).execution
    for message in reversed(outbox.messages):
        work = fail if message.job == "d" else returns(message.job)
        with suppress(ValueError):
            delivered(message, work, keep_result=True)
    delivered(one(outbox, "of another one"), returns("no"), keep_result=True)
    deliver_and_publish(reports)
    tasks = dict(Task.objects.values_list("job_id", "pk"))
    expected = [JobResult(tasks[name], "a.job", name) for name in names if name != "d"]
    with CaptureQueriesContext(connection) as captured:
        assert list(kept_ends.results(execution.pk)) == expected
    assert len(captured) == 3


def test_a_result_has_the_metadata_of_its_job(outbox: Outbox, reports: list[JobReport]) -> None:
    start("SCAN", [[NewJob("a.job", job_id="a", meta={"layer": 7})]])
    delivered(outbox.messages.pop(), returns(1), keep_result=True)
    deliver_and_publish(reports)
    assert [one.meta for one in kept_ends.results(Execution.objects.get().pk)] == [{"layer": 7}]


def test_a_traceback_begins_in_the_code_of_the_job_and_names_its_cause(
    outbox: Outbox, reports: list[JobReport]
) -> None:
    def work(job: Handle) -> None:
        try:
            json.loads("{")
        except ValueError as exc:
            raise KeyError("layer") from exc

    with suppress(KeyError):
        delivered(one(outbox), work)
    deliver_and_publish(reports)
    [(_, _, _, _, told)] = ends()
    assert told.startswith("Traceback (most recent call last):\n")
    assert "tracked.py" not in told
    assert "JSONDecodeError" in told
    assert told.endswith("KeyError: 'layer'\n")


def test_a_long_traceback_keeps_its_end(outbox: Outbox, reports: list[JobReport]) -> None:
    def work(job: Handle) -> None:
        raise ValueError("x" * 10_000 + " the end")

    with suppress(ValueError):
        delivered(one(outbox), work)
    [kept] = [one.kept for one in reports if one.kept]
    assert len(kept.traceback) == MAX_TRACEBACK
    assert kept.traceback.startswith(CUT + "x")
    assert kept.traceback.endswith("x the end\n")


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
def test_a_traceback_holds_no_secret(said: str, outbox: Outbox, reports: list[JobReport]) -> None:
    hidden = SECRET if said == "{hidden}" else "hidden-word"

    def work(job: Handle) -> None:
        raise ValueError(said.format(hidden=hidden))

    with suppress(ValueError):
        delivered(one(outbox), work)
    [kept] = [one.kept for one in reports if one.kept]
    for word in (hidden, SECRET, SECRET[-12:], "word-of-the-project"):
        assert word not in kept.traceback
    assert "ValueError" in kept.traceback or kept.traceback.startswith(CUT)


def test_a_traceback_that_cannot_be_written_ends_the_job_anyway(
    outbox: Outbox, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> str:
        raise RuntimeError("no words")

    monkeypatch.setattr("harbor_refresh.tasks.jobs.records.kept.redacted", broken)
    run_and_fail(outbox)
    deliver_and_publish(reports)
    assert (Task.objects.get().status, ends()) == ("Error", [])


def test_a_result_is_deleted_with_its_execution(outbox: Outbox, reports: list[JobReport]) -> None:
    delivered(one(outbox), returns(7), keep_result=True)
    deliver_and_publish(reports)
    execution = Execution.objects.get()
    refresh([execution.pk])
    delete([execution.pk])
    assert ends() == []


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(Scope.READ))


def test_the_api_lists_the_results_of_an_execution(
    outbox: Outbox, reports: list[JobReport], program: Program
) -> None:
    execution = start("SCAN", [[NewJob("a.job", job_id=name)] for name in "abc"]).execution
    for message in outbox.messages:
        delivered(message, returns({"name": message.job}), keep_result=True)
    deliver_and_publish(reports)
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


def test_the_page_of_a_task_folds_its_traceback(outbox: Outbox, reports: list[JobReport], admin: Client) -> None:
    def work(job: Handle) -> None:
        raise ValueError("<no such layer>")

    with suppress(ValueError):
        delivered(one(outbox), work)
    deliver_and_publish(reports)
    page = admin.get(page_of_task("a")).content.decode()
    folded = page[page.index("<details") : page.index("</details>")]
    assert "Show the traceback" in folded
    assert "ValueError: &lt;no such layer&gt;" in folded


def test_the_page_of_a_task_folds_a_long_result(outbox: Outbox, reports: list[JobReport], admin: Client) -> None:
    for name, length in (("short", 3_000), ("long", 5_000)):
        delivered(one(outbox, name), returns("x" * length), keep_result=True)
    deliver_and_publish(reports)
    assert (
        "<details"
        not in admin.get(page_of_task("short")).content.decode().partition("Its end")[2].partition("</pre>")[0]
    )
    assert "Show 5,002 characters" in admin.get(page_of_task("long")).content.decode()


def test_while_redis_is_away_at_the_end_the_report_has_the_result(
    outbox: Outbox, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise QueueUnavailable("away")

    monkeypatch.setattr(JobRecords, "settle", away)
    delivered(one(outbox), returns(7), keep_result=True)
    deliver_and_publish(reports)
    assert found() == [(7, "")]
