"""resume_stopped: what was stopped waits for another run in a new revision."""

import pytest

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Quarantine, Task
from harbor_refresh.tasks.jobs import TrackedExecution
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.chains import stop_broken
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_job_of, stop_jobs
from harbor_refresh.tasks.jobs.lifecycle.retries import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Verdict
from tests.integration.concurrency import Pause, in_background, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.sample_jobs import Outbox, begun, chained, known, recorded, stands, state
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "clock")

RESUMED = "resumed"


def test_what_was_stopped_waits_in_a_new_revision_with_one_message(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("stopped", "done", "failed", "runs")
    recorded("of another")
    for job, status, revision, runs in [
        ("stopped", "Stopped", 2, 2),
        ("done", "Success", 0, 0),
        ("failed", "Error", 0, 0),
        ("runs", "Running", 1, 1),
        ("of another", "Stopped", 0, 0),
    ]:
        stands(job, status, revision, runs)
    outbox.taken()
    before = known(redis)["tasks"]

    assert resume_stopped(execution.pk) == 1
    assert known(redis) == state(before | {"stopped": ("Pending", 3, 3, RESUMED)})
    assert outbox.taken() == [("stopped", 3, 3)]
    assert resume_stopped(execution.pk) == 0
    assert outbox.taken() == []


def test_a_stopped_execution_runs_again_and_its_stop_stops_no_new_run(outbox: Outbox) -> None:
    execution = TrackedExecution.objects.get(pk=recorded("a", "b").pk)
    first = {message.job: message for message in outbox.messages}
    outbox.taken()
    stop_jobs(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "Stopped"
    assert begun(first["b"])[0] == Verdict.OVER

    assert execution.resume_stopped() == 2
    assert (execution.status, execution.end_time) == ("Running", None)
    verdict, run = begun(outbox.messages[0])
    assert (verdict, run.job, run.revision) == (Verdict.GO, "a", 1)
    assert job_records().of(["a"])["a"].asked is False


def test_a_job_that_has_not_noticed_its_stop_changes_nothing_when_it_ends(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("a")
    (message,) = outbox.messages
    _, old = begun(message, "old")
    deliver_and_publish([JobReport("a", old.task_id, old.revision, "Running")])
    outbox.taken()
    stop_jobs(execution.pk)
    assert resume_stopped(execution.pk) == 1
    verdict, new = begun(outbox.messages[0], "new")
    assert (verdict, new.revision, new.runs) == (Verdict.GO, old.revision + 1, 2)
    assert job_records().settle(old, "Success", "too late") is None
    deliver_and_publish([JobReport("a", old.task_id, old.revision, "Stopped")])
    assert known(redis)["tasks"] == {"a": ("Pending", 1, 1, RESUMED)}


def test_a_stopped_chain_waits_for_its_turn_again(redis: Redis, outbox: Outbox) -> None:
    execution = chained("a", "b", "c")
    a = execution.tasks.get(job_id="a").pk
    deliver_and_publish([JobReport("a", a, 0, "Success", result=1)])
    stop_jobs(execution.pk)
    outbox.taken()
    assert resume_stopped(execution.pk) == 2
    waits = dict.fromkeys("bc", ("Pending", 1, 1, RESUMED))
    assert known(redis) == state({"a": ("Success", 0, 0, "")} | waits, unpublished=["c"])
    assert outbox.taken() == [("b", 1, 1)]


def test_what_was_stopped_behind_a_failure_is_left_to_a_retry(redis: Redis, outbox: Outbox) -> None:
    execution = chained("a", "b", takes_result=False)
    a = execution.tasks.get(job_id="a").pk
    deliver_and_publish([JobReport("a", a, 0, "Error", "no")])
    assert Task.objects.get(job_id="b").status == "Stopped"
    before = known(redis)
    assert resume_stopped(execution.pk) == 0
    assert known(redis) == before
    assert retry_failed(execution.pk) == 2


def test_a_job_that_was_stopped_alone_waits_for_the_job_before_it(redis: Redis, outbox: Outbox) -> None:
    execution = chained("a", "b", takes_result=False)
    a, b = (execution.tasks.get(job_id=job).pk for job in "ab")
    assert stop_job_of(b)
    outbox.taken()
    assert resume_stopped(execution.pk) == 1
    assert outbox.taken() == []
    deliver_and_publish([JobReport("a", a, 0, "Error", "no")])
    stop_broken([a])
    assert Task.objects.get(pk=b).status == "Stopped"


def test_quarantine_ends_if_there_is_something_to_resume_and_not_otherwise() -> None:
    stopped, done = recorded("a"), recorded("b")
    stands("a", "Stopped")
    stands("b", "Success")
    refresh([stopped.pk, done.pk])
    quarantine([stopped.pk, done.pk], 5)
    assert (resume_stopped(stopped.pk), resume_stopped(done.pk)) == (1, 0)
    assert list(Quarantine.objects.values_list("pk", flat=True)) == [done.pk]


def test_an_execution_that_is_gone_is_refused() -> None:
    with pytest.raises(NoSuchExecution):
        resume_stopped(7)


def test_of_two_resumptions_at_once_one_runs_each_job_again(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("a", "b")
    stop_jobs(execution.pk)
    outbox.taken()
    with Pause("deciding") as pause, in_background(lambda: resume_stopped(execution.pk)) as first:
        pause.wait_until_reached()
        with in_background(lambda: resume_stopped(execution.pk)) as second:
            wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
            pause.go_on.set()
            assert (first(), second()) == (2, 0)
    assert known(redis)["tasks"] == dict.fromkeys("ab", ("Pending", 1, 1, RESUMED))
    assert outbox.taken() == [("a", 1, 1), ("b", 1, 1)]
