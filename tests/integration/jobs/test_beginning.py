"""begin: whichever copy of a message comes, and whatever Redis has forgotten, a job runs only if the database says
that it has not ended; and one run at a time."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle import admission
from harbor_refresh.tasks.jobs.lifecycle.admission import begin
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_jobs
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from harbor_refresh.tasks.jobs.lifecycle.task_state import TaskState
from harbor_refresh.tasks.jobs.records.record import UNKNOWN
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Begun, ReceivedMessage, Verdict
from harbor_refresh.tasks.models import Job
from tests.integration.jobs.sample_jobs import Outbox, database_port, known, record, recorded, stands, write
from tests.integration.redis_state import Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "nodes")


@pytest.fixture
def received(outbox: Outbox) -> ReceivedMessage:
    """The first message of the job j."""
    recorded("j")
    (message,) = outbox.messages
    return ReceivedMessage("j", message.task_id, message.revision, message.runs, message.database)


def test_a_job_that_waits_runs(received: ReceivedMessage, redis: Redis) -> None:
    begun = begin(received, "me")
    assert (begun.verdict, begun.run.revision, begun.run.runs) == (Verdict.GO, 0, 1)
    assert known(redis)["records"] == {"j": record("j", node="me")}


@pytest.mark.parametrize("status", ["Success", "Error", "Stopped"])
def test_a_copy_of_the_message_of_a_job_that_has_ended_begins_nothing_and_leaves_nothing(
    status: str, received: ReceivedMessage, redis: Redis
) -> None:
    stands("j", status)
    assert begin(received, "me").verdict == Verdict.OVER
    assert known(redis)["records"] == {}


def test_nor_does_one_of_a_job_whose_task_was_deleted(received: ReceivedMessage, redis: Redis) -> None:
    delete([Task.objects.get().execution_id])
    assert begin(received, "me").verdict == Verdict.OVER
    assert known(redis)["records"] == {}


def test_a_record_that_an_older_redis_has_of_a_job_that_has_ended_is_forgotten(
    received: ReceivedMessage, redis: Redis
) -> None:
    write(redis, record("j", "Scheduled", 1, sent=False))
    stands("j", "Success", 1, 1)
    assert begin(received, "me").verdict == Verdict.OVER
    assert known(redis)["records"] == {}


@pytest.mark.parametrize(
    "other", [{"job": "another job"}, {"task_id": 99}, {"database": "00000000-0000-0000-0000-000000000000"}]
)
def test_a_message_of_another_job_or_another_database_begins_nothing(
    other: dict[str, Any], received: ReceivedMessage, redis: Redis
) -> None:
    verdict = begin(replace(received, **other), "me").verdict
    assert verdict == (Verdict.FOREIGN if "database" in other else Verdict.OVER)
    assert known(redis)["records"] == {}
    assert known(redis)["tasks"] == {"j": ("Pending", 0, 0, "")}


def test_what_an_older_message_says_is_corrected_by_the_database(received: ReceivedMessage, redis: Redis) -> None:
    """It waits for another try, and Redis has forgotten that."""
    stands("j", "Scheduled", 3, 3)
    begun = begin(received, "me")
    assert (begun.verdict, begun.run.revision, begun.run.runs) == (Verdict.GO, 3, 4)
    assert known(redis)["records"] == {"j": record("j", revision=3, node="me", runs=4)}


def test_a_job_that_has_run_as_often_as_it_may_is_exhausted_whatever_its_message_says(
    received: ReceivedMessage, redis: Redis
) -> None:
    stands("j", "Scheduled", 5, 5)
    begun = begin(received, "me")
    assert (begun.verdict, begun.run.revision) == (Verdict.EXHAUSTED, 5)
    assert begun.why == "it has begun 5 times, which is as often as it may: see max_attempts"
    assert [one.status for one in known(redis)["records"].values()] == ["Error"]


def test_runs_whose_report_comes_too_late_are_counted_when_redis_has_forgotten_them(
    received: ReceivedMessage, redis: Redis
) -> None:
    """The report of the run before was held up, that of the last one was not, and then Redis came back older."""
    stands("j", "Scheduled", 3, 3)
    deliver_and_publish([JobReport("j", received.task_id, 5, "Scheduled", earlier_runs=5)])
    deliver_and_publish([JobReport("j", received.task_id, 4, "Scheduled", earlier_runs=4)])
    assert Task.objects.get().run_count == 5
    assert begin(received, "me").verdict == Verdict.EXHAUSTED


def test_a_copy_of_a_message_from_before_it_was_tried_again_exhausts_nothing(
    received: ReceivedMessage, redis: Redis
) -> None:
    Job.objects.update(runs_before=5)
    stands("j", "Scheduled", 6, 6)
    write(redis, record("j", "Scheduled", 6, runs=6, acknowledged=(6, "Scheduled")))
    begun = begin(received, "me")
    assert (begun.verdict, begun.run.revision, begun.run.runs) == (Verdict.GO, 6, 7)


def test_what_an_older_redis_has_counted_is_corrected_by_the_database(
    received: ReceivedMessage, redis: Redis
) -> None:
    stands("j", "Scheduled", 4, 4)
    write(redis, record("j", "Scheduled", 4, runs=1))
    begun = begin(received, "me")
    assert (begun.verdict, begun.run.runs) == (Verdict.GO, 5)
    assert known(redis)["records"]["j"].runs == 5


@pytest.mark.parametrize("error", [OperationalError("canceling statement"), SoftTimeLimitExceeded()])
def test_whatever_keeps_the_database_from_answering_costs_no_attempt(
    error: Exception, received: ReceivedMessage, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(task_id: int, job: str) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(admission, "task_state_of", fail)
        with pytest.raises(type(error)):
            begin(received, "me")
    assert known(redis)["records"] == {}
    assert begin(received, "me").run.runs == 1


@pytest.mark.parametrize("left", [None, {"status": "Pending"}])
def test_a_job_that_runs_and_that_redis_has_forgotten_is_looked_for_and_runs_no_second_time(
    left: dict[str, Any] | None, received: ReceivedMessage, redis: Redis
) -> None:
    stands("j", "Running")
    if left:
        write(redis, record("j", **left))
    assert begin(received, "me").verdict == Verdict.ALIVE
    assert known(redis)["records"] == {"j": record("j", node=UNKNOWN, acknowledged=(0, "Running"))}
    assert begin(received, "me").verdict == Verdict.ALIVE, "the process that runs it has its time to say so"


def test_a_run_that_was_looked_for_and_that_no_process_has_runs_again(
    received: ReceivedMessage, redis: Redis, clock: Clock
) -> None:
    stands("j", "Running")
    begin(received, "me")
    clock.move(10.000_001)
    begun = begin(received, "me")
    assert (begun.verdict, begun.run.revision, begun.run.runs) == (Verdict.GO, 1, 2)


def test_a_database_that_is_away_leaves_the_job_as_it_was(received: ReceivedMessage, redis: Redis) -> None:
    for waiting in (None, record("j", "Scheduled", 1, runs=1, sent=False)):
        if waiting:
            write(redis, waiting)
        with database_port() as port:
            port.away()
            with pytest.raises(DatabaseAway):
                begin(received, "me")
        assert known(redis)["records"] == ({"j": waiting} if waiting else {})
    assert begin(received, "me").verdict == Verdict.GO


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """This happens once, right after the database was asked."""
    ask, left = admission.task_state_of, [happens]

    def ask_and_let_it_happen(task_id: int, job: str) -> TaskState | None:
        stand = ask(task_id, job)
        if left:
            left.pop()()
        return stand

    monkeypatch.setattr(admission, "task_state_of", ask_and_let_it_happen)


def test_another_copy_that_comes_while_the_database_is_asked_finds_that_the_job_is_taken(
    received: ReceivedMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Begun] = []
    meanwhile(monkeypatch, lambda: found.append(job_records().begin(received, "other")))
    assert begin(received, "me").verdict == Verdict.GO
    assert [one.verdict for one in found] == [Verdict.ALIVE]


def test_a_process_that_stands_still_after_it_has_asked_begins_anew(
    received: ReceivedMessage, redis: Redis, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease runs out, another runs the job to its end, and all of that is forgotten."""
    now = time.monotonic()
    monkeypatch.setattr(admission.time, "monotonic", lambda: now)

    def run_to_its_end_elsewhere() -> None:
        nonlocal now
        now += 60
        clock.move(60)
        other = job_records().begin(received, "other")
        assert (other.verdict, other.run.revision) == (Verdict.GO, 1)
        assert job_records().settle(other.run, "Success", "") == 1
        deliver_and_publish([JobReport("j", received.task_id, 1, "Success")])

    meanwhile(monkeypatch, run_to_its_end_elsewhere)
    assert begin(received, "me").verdict == Verdict.OVER
    assert known(redis)["records"] == {}
    assert known(redis)["tasks"] == {"j": ("Success", 1, 1, "")}


def test_a_stop_that_commits_before_the_database_is_asked_lets_nothing_begin(
    received: ReceivedMessage, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = admission.task_state_of

    def stop_and_ask(task_id: int, job: str) -> TaskState | None:
        stop_jobs(Task.objects.get().execution_id)
        return ask(task_id, job)

    monkeypatch.setattr(admission, "task_state_of", stop_and_ask)
    assert begin(received, "me").verdict == Verdict.OVER
    assert known(redis)["records"] == {}


def test_a_stop_that_comes_after_it_asks_the_run_to_stop(
    received: ReceivedMessage, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: stop_jobs(Task.objects.get().execution_id) and None)
    begun = begin(received, "me")
    assert begun.verdict == Verdict.GO
    assert job_records().check_in(begun.run) is True


def test_no_turn_of_a_job_opens_it_again_once_it_has_ended(received: ReceivedMessage, redis: Redis) -> None:
    stands("j", "Stopped", 1, 1)
    for status in ("Pending", "Scheduled", "Running", "Success", "Error"):
        write(redis, record("j", status, 2, sent=False, node="me" if status == "Running" else ""))
        deliver_and_publish([JobReport("j", received.task_id, 2, status)])
        assert known(redis)["tasks"] == {"j": ("Stopped", 1, 1, "")}
        assert known(redis)["records"] == {}, "the job is over"


def test_a_person_opens_it_again(received: ReceivedMessage, redis: Redis) -> None:
    stands("j", "Error", 1, 1)
    assert retry_failed(Task.objects.get().execution_id) == 1
    deliver_and_publish([JobReport("j", received.task_id, 2, "Running")])
    assert known(redis)["tasks"]["j"][:3] == ("Running", 2, 2)


def test_a_turn_of_another_job_changes_no_task_of_its_number(received: ReceivedMessage, redis: Redis) -> None:
    """A record of another database in the same Redis, say, or a queue that outlived a restored backup."""
    write(redis, replace(record("j", "Success", node="me"), job="of another"))
    deliver_and_publish([JobReport("of another", received.task_id, 0, "Success")])
    assert known(redis)["tasks"] == {"j": ("Pending", 0, 0, "")}
    assert known(redis)["records"] == {}
