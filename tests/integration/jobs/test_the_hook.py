"""Reports of jobs go over the hook: what a real HTTP server gets, what its answers mean, and who posts again."""

import json
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.celery_tasks import recover_stale
from harbor_refresh.tasks.jobs import hook as over_http
from harbor_refresh.tasks.jobs.hook import JobReport, fire_again
from harbor_refresh.tasks.jobs.turns import Turn, take
from harbor_refresh.tasks.models.job import Job
from tests.integration.jobs.hook_target import Request, Target
from tests.integration.jobs.sample_jobs import (
    Outbox,
    beats,
    begun,
    recorded,
    rows,
    stands,
    tasks,
    tasks_refuse,
    tasks_refuse_no_more,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database", "core")

#: An end that was first reported long ago is fired again at once.
LONG_AGO = 60.0


@pytest.fixture
def reports(outbox: Outbox) -> list[JobReport]:
    """The ends of five jobs, in the rows of these jobs. The process of their runs is dead."""
    recorded(*"abcde")
    since = time.time() - LONG_AGO
    found = [
        JobReport(one.pk, one.job_id, "Success", one.status_revision, "", since)
        for one in Task.objects.order_by("pk")
    ]
    for one in found:
        Job.objects.filter(pk=one.task_id).update(state="ended", report=json.loads(one.text))
    return found


def unreported() -> list[str]:
    return sorted(Job.objects.filter(report__isnull=False).values_list("task__job_id", flat=True))


def jobs(reports: Sequence[JobReport]) -> list[str]:
    return [one.job for one in reports]


def ids(reports: Sequence[JobReport]) -> list[int]:
    return [one.task_id for one in reports]


def answer(core: Target, report: JobReport, status: int) -> None:
    core.answers[str(report.task_id)] = status


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "harbor_refresh"]


def statuses() -> list[str]:
    return [status for status, *_ in tasks().values()]


def ends(outbox: Outbox, status: Status = Status.SUCCESS, message: str = "") -> None:
    """The next job begins and ends with this status."""
    beats()
    (sent,) = outbox.take()
    run = begun(sent)
    assert run
    take([Turn(run.run, status, message)])


def test_an_end_is_posted_as_harbors_core_reads_it_and_its_task_is_left_to_the_core(
    core: Target, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    recorded("fails")
    before, (task,) = tasks(), Task.objects.all()
    ends(outbox, Status.ERROR, "ValueError: no")
    wait_for(lambda: not unreported(), "the report is taken")
    metadata = {"id": "fails", "status": "Error", "revision": task.status_revision}
    body = {"job_id": "fails", "status": "Error", "metadata": metadata, "status_message": "ValueError: no"}
    path = f"/service/notifications/tasks/{task.pk}"
    assert core.requests == [Request(path, "Harbor-Secret abc", "application/json", body)]
    assert tasks() == before
    assert rows() == {"fails": ("ended", 1)}
    assert ours(caplog) == []


def test_without_a_secret_no_authorization_is_sent(
    core: Target, settings: Settings, reports: list[JobReport]
) -> None:
    settings.REFRESH_REPORT_AUTHORIZATION = ""
    assert over_http.hook().post(reports[:1]).count == 1
    assert [one.authorization for one in core.requests] == [None]


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_a_report_that_was_taken_is_forgotten(status: int, core: Target, reports: list[JobReport]) -> None:
    answer(core, reports[2], status)
    assert fire_again() == 5
    assert (sorted(core.asked()), unreported()) == (ids(reports), [])
    assert fire_again() == 0


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429, 500, 502, 503])
def test_a_refusal_that_may_pass_is_left_and_holds_up_no_other(
    status: int, core: Target, reports: list[JobReport]
) -> None:
    for number in (0, 2):
        answer(core, reports[number], status)
    posted = over_http.hook().post(reports)
    assert (jobs(posted.accepted), jobs(posted.left)) == (["b", "d", "e"], ["a", "c"])
    assert posted.why_left == f"it answered {status}"
    assert fire_again() == 3
    assert unreported() == ["a", "c"]
    core.answers.clear()
    recover_stale()
    assert (unreported(), statuses()) == ([], ["Pending"] * 5)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://core/login", "a redirect to 'https://core/login', which"),
        ("", "a redirect to '', which"),
        ("/" + "x" * 1_000, "a redirect to '/" + "x" * 299 + "', which"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_reason_says_what_to_change(
    status: int, location: str, shown: str, core: Target, reports: list[JobReport]
) -> None:
    answer(core, reports[0], status)
    core.location = location
    posted = over_http.hook().post(reports)
    assert jobs(posted.left) == ["a"]
    assert posted.why_left == f"it answered {status}, {shown} is not followed: change REFRESH_REPORT_URL"
    assert core.asked() == ids(reports)


@pytest.mark.parametrize("status", [400, 410, 422])
def test_an_end_that_the_target_refuses_for_good_is_written_here(
    status: int, core: Target, reports: list[JobReport], caplog: pytest.LogCaptureFixture
) -> None:
    """No other program writes it, and its execution would run for ever."""
    answer(core, reports[1], status)
    assert fire_again() == 4
    assert (unreported(), statuses()) == ([], ["Pending", "Success", "Pending", "Pending", "Pending"])
    assert ours(caplog) == [f"The hook does not want the report that job b is Success: the hook answered {status}"]


def test_a_report_that_is_no_end_and_is_refused_for_good_is_written_nowhere(core: Target, outbox: Outbox) -> None:
    recorded("j")
    core.answers[str(Task.objects.get().pk)] = 400
    beats()
    (sent,) = outbox.take()
    run = begun(sent)
    assert run
    take([Turn(run.run, Status.RUNNING)])
    wait_for(lambda: not unreported(), "the report is given up")
    assert (statuses(), rows()) == (["Pending"], {"j": ("running", 1)})


def test_an_end_that_the_target_and_the_database_refuse_holds_up_no_other(
    core: Target, reports: list[JobReport]
) -> None:
    for one in reports[1:3]:
        answer(core, one, 410)
    tasks_refuse(f"new.id = {reports[1].task_id}")
    assert fire_again() == 3
    assert (unreported(), statuses()[1:3]) == (["b"], ["Pending", "Success"])
    tasks_refuse_no_more()
    fire_again()
    assert (unreported(), statuses()[1]) == ([], "Success")


def test_the_report_of_a_task_that_is_deleted_is_given_up(core: Target, reports: list[JobReport]) -> None:
    answer(core, reports[1], 410)
    core.meanwhile = lambda _: Task.objects.filter(pk=reports[1].task_id).delete()
    assert fire_again() == 4
    assert unreported() == []


def test_a_task_that_the_target_does_not_know_is_given_up_after_five_minutes(
    core: Target, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row may not be committed yet."""
    assert over_http.PATIENCE == 300
    answer(core, reports[1], 404)
    assert fire_again() == 4
    assert (unreported(), statuses()[1]) == (["b"], "Pending")
    monkeypatch.setattr(over_http, "PATIENCE", LONG_AGO / 2)
    fire_again()
    assert (unreported(), statuses()[1]) == ([], "Success")


def test_a_target_that_is_not_there_is_asked_once_and_all_reports_are_left(
    core: Target, settings: Settings, reports: list[JobReport]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        settings.REFRESH_REPORT_URL = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        posted = over_http.hook().post(reports)
        assert fire_again() == 0
    assert (posted.count, jobs(posted.left)) == (0, ["b", "c", "d", "e", "a"])
    assert posted.why_left.startswith("ConnectError: ")
    assert unreported() == [*"abcde"]


def test_a_target_that_gives_no_answer_is_asked_no_more_and_that_report_comes_last(
    core: Target, reports: list[JobReport]
) -> None:
    """The timeout is short from the third report on: the first two are answered, however slowly."""

    def shorten(_: Request) -> None:
        if len(core.requests) == 2:
            over_http.hook()._client.timeout = 0.3

    answer(core, reports[0], 500)
    core.hangs = str(reports[2].task_id)
    core.meanwhile = shorten
    posted = over_http.hook().post(reports)
    assert (posted.count, jobs(posted.left)) == (1, ["d", "e", "a", "c"])
    assert posted.why_left.startswith("ReadTimeout: ")


def test_a_slow_target_takes_no_longer_than_a_call_may(
    core: Target, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_http, "SECONDS", 0.3)
    core.delay = 0.2
    posted = over_http.hook().post(reports)
    asked = len(core.requests)
    assert asked in (1, 2), "none is sent once the time is over"
    assert (jobs(posted.accepted), jobs(posted.left)) == ([*"abcde"[:asked]], [*"abcde"[asked:]])
    assert posted.why_left == "it answers too slowly"


def test_more_reports_than_a_pass_takes_are_fired_in_turns(
    core: Target, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are refused each time hold up no other: a pass takes some at random."""
    monkeypatch.setattr(over_http, "PAGE", 1)
    for one in reports[:2]:
        answer(core, one, 503)
    for _ in range(200):
        if unreported() == ["a", "b"]:
            break
        fire_again()
    assert unreported() == ["a", "b"]


@pytest.mark.parametrize("status", ["Success", "Stopped"])
def test_a_report_that_its_task_has_by_now_is_not_fired_again(
    status: str, core: Target, reports: list[JobReport]
) -> None:
    """The answer of the target was lost, or another program has reported."""
    revision = reports[0].revision
    stands("a", status, revision)
    stands("b", "Pending", revision + 1)
    stands("c", "Running", revision)
    fire_again()
    assert sorted(core.asked()) == ids(reports[2:])


def test_a_report_is_left_to_its_process_for_some_seconds(core: Target, reports: list[JobReport]) -> None:
    Job.objects.filter(task__job_id="a").update(report=json.loads(replace(reports[0], since=time.time()).text))
    fire_again()
    assert sorted(core.asked()) == ids(reports[1:])


def test_the_process_of_a_run_posts_again_a_second_later(
    core: Target, outbox: Outbox, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_http, "PAUSE_SECONDS", 0.01)
    recorded("j")
    pk = str(Task.objects.get().pk)
    core.answers[pk] = 503
    core.meanwhile = lambda _: core.answers.clear() if len(core.requests) == 2 else None
    ends(outbox)
    wait_for(lambda: not unreported(), "the report is taken")
    assert len(core.requests) == 2
    assert ours(caplog) == ["1 turns of jobs cannot be reported, trying again: it answered 503"]


def test_a_stop_ends_a_task_whose_end_was_not_taken(core: Target, reports: list[JobReport]) -> None:
    answer(core, reports[0], 503)
    fire_again()
    execution = Task.objects.get(job_id="a").execution_id
    assert stop(execution)
    assert statuses() == ["Stopped"] * 5
    fire_again()
    assert (unreported(), statuses()) == ([], ["Stopped"] * 5)


def test_an_end_waits_in_its_row_while_it_is_not_taken(core: Target, outbox: Outbox) -> None:
    """So a message that comes twice runs nothing."""
    recorded("j")
    core.answers[str(Task.objects.get().pk)] = 202
    beats()
    (sent,) = outbox.take()
    run = begun(sent)
    assert run
    turns: list[Any] = [Turn(run.run, Status.SUCCESS)]
    assert len(take(turns)) == 1
    assert (take(turns), begun(sent), rows()) == ([], None, {"j": ("ended", 1)})
