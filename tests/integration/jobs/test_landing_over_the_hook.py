"""Reports of jobs go over the hook: what is sent to a real HTTP server, and what its answer means."""

import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.delivery import hook as over_http
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from tests.integration.jobs.hook_target import Request, Target
from tests.integration.jobs.sample_jobs import (
    Outbox,
    known,
    record,
    recorded,
    stands,
    tasks_refuse,
    tasks_refuse_no_more,
    write,
)
from tests.integration.redis_state import Redis
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database", "clock", "outbox")


@pytest.fixture
def reports(redis: Redis, outbox: Outbox) -> list[JobReport]:
    """The ends of five jobs, each with its record."""
    execution = recorded("a", "b", "c", "d", "e")
    for job in "abcde":
        stands(job, "Pending")
    tasks = execution.tasks.order_by("pk")
    write(redis, *(record(task.job_id, "Success", node="n", task_id=task.pk) for task in tasks))
    return [JobReport(task.job_id, task.pk, 0, "Success") for task in tasks]


def in_progress(redis: Redis) -> list[str]:
    return sorted(known(redis)["records"])


def jobs(reports: Sequence[JobReport]) -> list[str]:
    return [report.job for report in reports]


def ids(reports: Sequence[JobReport]) -> list[int]:
    return [report.task_id for report in reports]


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "harbor_refresh"]


def answer(core: Target, report: JobReport, status: int) -> None:
    core.answers[str(report.task_id)] = status


def test_a_status_change_is_posted_as_harbors_core_reads_it_and_nothing_is_written_here(
    core: Target, redis: Redis
) -> None:
    recorded("ends", "fails")
    ends, fails = Task.objects.order_by("pk")
    write(redis, record("ends", "Success", node="n"), record("fails", "Error", 3, node="n"))
    before = known(redis)["tasks"]
    reports = [
        JobReport("ends", ends.pk, 0, "Success"),
        JobReport("fails", fails.pk, 3, "Error", "ValueError: no"),
    ]
    delivered = deliver_and_publish(reports)
    assert (delivered.count, delivered.left, delivered.refused) == (2, [], [])

    def request(task: Task, body: dict[str, Any]) -> Request:
        path = f"/service/notifications/tasks/{task.pk}"
        return Request(path, "Harbor-Secret abc", "application/json", body)

    def body(job: str, status: str, revision: int) -> dict[str, Any]:
        metadata = {"id": job, "status": status, "revision": revision}
        return {"job_id": job, "status": status, "metadata": metadata}

    assert core.requests == [
        request(ends, body("ends", "Success", 0)),
        request(fails, body("fails", "Error", 3) | {"status_message": "ValueError: no"}),
    ]
    assert known(redis)["tasks"] == before, "the other side has applied them"
    assert in_progress(redis) == []


def test_without_a_secret_no_authorization_is_sent(
    core: Target, settings: Settings, reports: list[JobReport]
) -> None:
    over_http.hook().close()
    settings.REFRESH_REPORT_AUTHORIZATION = ""
    over_http.hook.cache_clear()
    deliver_and_publish(reports[:1])
    assert [one.authorization for one in core.requests] == [None]


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_what_was_taken_is_acknowledged(status: int, core: Target, redis: Redis, reports: list[JobReport]) -> None:
    answer(core, reports[2], status)
    delivered = deliver_and_publish(reports)
    assert (delivered.count, jobs(delivered.left), core.asked()) == (5, [], ids(reports))
    assert in_progress(redis) == []


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429, 500, 502, 503])
def test_a_refusal_that_may_pass_is_left_comes_last_and_holds_up_nobody(
    status: int, core: Target, redis: Redis, reports: list[JobReport]
) -> None:
    for number in (0, 2):
        answer(core, reports[number], status)
    delivered = deliver_and_publish(reports)
    assert (delivered.count, jobs(delivered.left), delivered.why_left) == (3, ["a", "c"], f"it answered {status}")
    assert core.asked() == ids(reports)
    assert in_progress(redis) == ["a", "c"]
    core.answers.clear()
    assert deliver_and_publish(delivered.left).count == 2
    assert in_progress(redis) == []


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("https://core/login", "a redirect to 'https://core/login', which"),
        ("", "a redirect to '', which"),
        ("/" + "x" * 1_000, "a redirect to '/" + "x" * 299 + "', which"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_left_and_the_reason_says_where_to_and_what_to_change(
    status: int, location: str, told: str, core: Target, reports: list[JobReport]
) -> None:
    answer(core, reports[0], status)
    core.location = location
    delivered = deliver_and_publish(reports)
    assert (delivered.count, jobs(delivered.left)) == (4, ["a"])
    assert delivered.why_left == f"it answered {status}, {told} is not followed: change REFRESH_REPORT_URL"
    assert core.asked() == ids(reports), "it was not followed"


def statuses() -> list[str]:
    return list(Task.objects.order_by("pk").values_list("status", flat=True))


@pytest.mark.parametrize("status", [400, 410, 422])
def test_an_end_that_the_target_refuses_for_good_is_told_acknowledged_and_written_here(
    status: int, core: Target, redis: Redis, reports: list[JobReport], caplog: pytest.LogCaptureFixture
) -> None:
    """No other program writes it, and a task that stays as it is would have its job run again."""
    answer(core, reports[1], status)
    delivered = deliver_and_publish(reports)
    assert (delivered.count, jobs(delivered.left), jobs(delivered.refused)) == (5, [], [])
    assert in_progress(redis) == []
    assert ours(caplog) == [f"Refused report 0 of a batch: the hook answered {status}"]
    assert statuses() == ["Pending", "Success", "Pending", "Pending", "Pending"]


def test_a_report_that_is_no_end_and_is_refused_for_good_is_not_written_here(
    core: Target, reports: list[JobReport]
) -> None:
    answer(core, reports[1], 400)
    assert deliver_and_publish([replace(reports[1], status="Running")]).count == 1
    assert statuses() == ["Pending"] * 5


def test_an_end_that_the_target_refuses_and_the_database_too_waits_for_recovery(
    core: Target, redis: Redis, reports: list[JobReport]
) -> None:
    answer(core, reports[1], 410)
    tasks_refuse(f"new.id = {reports[1].task_id}")
    delivered = deliver_and_publish(reports)
    assert (delivered.count, jobs(delivered.left), jobs(delivered.refused)) == (4, [], ["b"])
    assert in_progress(redis) == ["b"]
    tasks_refuse_no_more()
    assert deliver_and_publish(reports[1:2]).count == 1
    assert (statuses()[1], in_progress(redis)) == ("Success", [])


def test_an_end_of_a_task_that_is_deleted_meanwhile_is_acknowledged(
    core: Target, redis: Redis, reports: list[JobReport]
) -> None:
    def delete_it(request: Request) -> None:
        Task.objects.filter(pk=reports[1].task_id).delete()

    answer(core, reports[1], 410)
    core.meanwhile = delete_it
    assert deliver_and_publish(reports[1:2]).count == 1
    assert in_progress(redis) == ["a", "c", "d", "e"]


def test_a_task_that_the_target_does_not_know_yet_is_reported_again_until_it_does(
    core: Target, redis: Redis, reports: list[JobReport]
) -> None:
    answer(core, reports[1], 404)
    for _ in range(3):
        delivered = deliver_and_publish(reports[1:2])
        assert (jobs(delivered.left), delivered.why_left) == (["b"], "it answered 404")
    core.answers.clear()
    assert deliver_and_publish(delivered.left).count == 1
    assert in_progress(redis) == ["a", "c", "d", "e"]


def test_a_task_that_the_target_never_knows_is_given_up_after_a_time_and_its_end_is_written_here(
    core: Target, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert over_http.PATIENCE == 300
    monkeypatch.setattr(over_http, "PATIENCE", 0.3)
    answer(core, reports[1], 404)
    begun = time.monotonic()
    wait_for(lambda: deliver_and_publish(reports[1:2]).count, "the report is given up")
    assert time.monotonic() - begun >= 0.3
    assert ours(caplog) == ["Refused report 0 of a batch: the hook answered 404"]
    assert statuses()[1] == "Success"


def test_what_is_remembered_of_unknown_tasks_stays_bounded(
    core: Target, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_http, "MOST_REMEMBERED", 2)
    for report in reports:
        answer(core, report, 404)
    deliver_and_publish(reports)
    assert [job for job, *_ in over_http.hook()._unknown_since] == ["d", "e"]


def test_a_change_that_lands_is_no_line_in_the_log(
    core: Target, reports: list[JobReport], caplog: pytest.LogCaptureFixture
) -> None:
    """There are two for each job."""
    assert deliver_and_publish(reports).count == 5
    assert caplog.messages == []


def test_a_target_that_is_not_there_is_asked_once_and_all_are_left_the_first_of_them_last(
    core: Target, settings: Settings, redis: Redis, reports: list[JobReport]
) -> None:
    over_http.hook().close()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        settings.REFRESH_REPORT_URL = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
        over_http.hook.cache_clear()
        delivered = deliver_and_publish(reports)
    assert (delivered.count, jobs(delivered.left)) == (0, ["b", "c", "d", "e", "a"])
    assert delivered.why_left.startswith("ConnectError: ")
    assert in_progress(redis) == ["a", "b", "c", "d", "e"]


def test_a_target_that_gives_no_answer_is_asked_no_more_and_that_one_comes_last(
    core: Target, redis: Redis, reports: list[JobReport]
) -> None:
    """The timeout is short from the third report on: the first two are answered, however slowly."""

    def shorten(request: Request) -> None:
        if len(core.requests) == 2:
            over_http.hook()._client.timeout = 0.3

    answer(core, reports[0], 500)
    core.hangs = str(reports[2].task_id)
    core.meanwhile = shorten
    delivered = deliver_and_publish(reports)
    wait_for(lambda: len(core.requests) >= 3, "the third request to be read")
    assert (delivered.count, jobs(delivered.left)) == (1, ["d", "e", "a", "c"])
    assert delivered.why_left.startswith("ReadTimeout: ")
    assert core.asked() == ids(reports[:3])
    assert in_progress(redis) == ["a", "c", "d", "e"]


def test_a_slow_target_takes_no_longer_than_a_call_may_and_keeps_what_it_has_taken(
    core: Target, redis: Redis, reports: list[JobReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_http, "SECONDS", 0.3)
    core.delay = 0.2
    answer(core, reports[0], 500)
    begun = time.monotonic()
    delivered = deliver_and_publish(reports)
    assert time.monotonic() - begun >= 0.2
    asked = len(core.requests)
    assert asked in (1, 2), "none is sent once the time is over"
    assert delivered.count == asked - 1
    assert (jobs(delivered.left), delivered.why_left) == (
        jobs([*reports[asked:], reports[0]]),
        "it answers too slowly",
    )
    assert in_progress(redis) == sorted(jobs(delivered.left))
