"""Revisions of jobs that report over the hook: unix seconds that grow with each run, whatever the clocks say."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.admission import begin
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import ReceivedMessage, Run, Verdict
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from tests.integration.executions.hook_requests import SECRET, post
from tests.integration.jobs.hook_target import Request, Target
from tests.integration.jobs.sample_jobs import SECOND, Outbox, alive, known, record, recorded, stands, write
from tests.integration.redis_state import Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "clock", "nodes", "core")


@pytest.fixture
def received(outbox: Outbox) -> Callable[[], ReceivedMessage]:
    """The last message of the job j."""

    def last() -> ReceivedMessage:
        message = outbox.messages[-1]
        return ReceivedMessage("j", message.task_id, message.revision, message.runs, message.database)

    return last


@pytest.fixture
def is_now(clock: Clock) -> int:
    """The clock of Redis stands at the second of the tests' own clock."""
    now = int(time.time())
    clock.move(now - clock.now // SECOND)
    return now


def took(outbox: Outbox, status: str) -> int:
    return Task.objects.get(status=status).status_revision


def test_a_job_begins_in_the_second_in_which_it_was_recorded(
    received: Callable[[], ReceivedMessage], outbox: Outbox
) -> None:
    before = int(time.time())
    recorded("j", options={"countdown": 60})
    first = Task.objects.get().status_revision
    assert before <= first <= time.time()
    assert (received().revision, received().runs) == (first, 0)
    assert outbox.messages[-1].options == {"countdown": 60}, "it is its first run still"
    begun = begin(received(), "me")
    assert (begun.verdict, begun.run.revision, begun.run.runs) == (Verdict.GO, first, 1)


def test_another_try_has_the_second_in_which_it_was_decided(
    received: Callable[[], ReceivedMessage], clock: Clock, is_now: int
) -> None:
    recorded("j")
    run = begin(received(), "live").run
    clock.move(100)
    later = clock.now // SECOND
    assert later > run.revision + 1
    assert job_records().settle(run, "Scheduled", "") == later


def test_a_clock_that_stands_still_or_goes_back_still_gives_a_higher_revision(
    received: Callable[[], ReceivedMessage], clock: Clock
) -> None:
    """The clock of Redis is decades behind."""
    recorded("j")
    run = begin(received(), "live").run
    assert job_records().settle(run, "Scheduled", "") == run.revision + 1


def test_a_job_whose_worker_is_dead_waits_in_the_second_in_which_that_was_found(
    redis: Redis, clock: Clock, outbox: Outbox, is_now: int
) -> None:
    recorded("j")
    task = Task.objects.get()
    run = Run("j", task.pk, "dead", task.status_revision, 1)
    write(redis, replace(record("j", node="dead", revision=run.revision), checked_in=clock.now, renewed=clock.now))
    stands("j", "Running", run.revision)
    clock.move(60)
    alive(redis, "live", clock)
    assert recover_jobs(outbox.publish).given_back == 1
    (released,) = known(redis)["records"].values()
    assert (released.status, released.revision) == ("Pending", clock.now // SECOND)
    assert outbox.messages[-1].revision in (run.revision, released.revision)


def test_a_retry_by_hand_has_the_second_in_which_it_was_asked_for(outbox: Outbox) -> None:
    execution = recorded("j")
    stands("j", "Error", 5, 2)
    before = int(time.time())
    assert retry_failed(execution.pk) == 1
    revision = Task.objects.get().status_revision
    assert before <= revision <= time.time()
    stands("j", "Error", revision + 1_000, 3)
    retry_failed(execution.pk)
    assert Task.objects.get().status_revision == revision + 1_001, "a clock that went back"


def test_without_a_hook_revisions_count(
    settings: Settings, received: Callable[[], ReceivedMessage], outbox: Outbox, is_now: int
) -> None:
    settings.REFRESH_REPORT_URL = ""
    execution = recorded("j")
    run = begin(received(), "live").run
    assert (run.revision, job_records().settle(run, "Scheduled", "")) == (0, 1)
    stands("j", "Error", 1, 1)
    retry_failed(execution.pk)
    assert Task.objects.get().status_revision == 2


def test_a_job_that_was_recorded_before_there_was_a_hook_goes_on_in_unix_seconds(
    settings: Settings, core: Target, received: Callable[[], ReceivedMessage], clock: Clock, is_now: int
) -> None:
    url, settings.REFRESH_REPORT_URL = settings.REFRESH_REPORT_URL, ""
    recorded("j")
    settings.REFRESH_REPORT_URL = url
    run = begin(received(), "live").run
    assert (run.revision, job_records().settle(run, "Scheduled", "")) == (0, clock.now // SECOND)


def test_every_repeat_of_a_report_has_the_same_revision(
    core: Target, redis: Redis, outbox: Outbox, clock: Clock, received: Callable[[], ReceivedMessage]
) -> None:
    recorded("j")
    run = begin(received(), "live").run
    assert job_records().settle(run, "Success", "") == run.revision
    core.answers[str(run.task_id)] = 503
    deliver_and_publish([JobReport.of_run(run, "Success")])
    core.answers.clear()
    clock.move(60)
    assert recover_jobs(outbox.publish) == Recovered(landed=1)
    assert [one.body["metadata"]["revision"] for one in core.requests] == [run.revision] * 2


def test_our_own_hook_as_the_target_gives_the_tasks_of_a_system_without_a_hook(
    core: Target, settings: Settings, outbox: Outbox, clock: Clock, received: Callable[[], ReceivedMessage]
) -> None:
    """A job that is tried again, ends as Error, is retried by hand and succeeds."""
    settings.REFRESH_HARBOR_SECRET = SECRET

    def take(request: Request) -> None:
        core.answers[request.path.rpartition("/")[2]] = post(
            request.body, request.path.rpartition("/")[2]
        ).status_code

    core.meanwhile = take
    execution = recorded("j")
    told = []

    def report(run: Run, status: str, revision: int | None = None, message: str = "") -> None:
        assert deliver_and_publish([JobReport.of_run(run, status, revision, message)]).count == 1
        task = Task.objects.get()
        told.append((task.status, task.status_revision, task.run_count, task.status_message))

    run = begin(received(), "live").run
    first = run.revision
    report(run, "Running")
    assert begin(received(), "other").verdict == Verdict.ALIVE, "a copy of its message"
    again = job_records().settle(run, "Scheduled", "no route")
    assert again == first + 1
    report(run, "Scheduled", again, "no route")
    run = begin(replace(received(), revision=again, runs=1), "live").run
    report(run, "Running")
    job_records().settle(run, "Error", "broken")
    report(run, "Error", message="broken")
    assert retry_failed(execution.pk) == 1
    third = Task.objects.get().status_revision
    run = begin(received(), "live").run
    assert run.revision == third > again
    report(run, "Running")
    job_records().settle(run, "Success", "")
    report(run, "Success")
    assert told == [
        ("Running", first, 0, ""),
        ("Scheduled", again, 1, "no route"),
        ("Running", again, 1, "no route"),
        ("Error", again, 1, "broken"),
        ("Running", third, 2, "tried again"),
        ("Success", third, 2, ""),
    ]
    assert stop(execution.pk) == 0
