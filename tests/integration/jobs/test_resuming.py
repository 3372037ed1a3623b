"""resume_stopped: what was stopped waits for another run in a new revision."""

import pytest

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Quarantine, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import TrackedExecution
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.stops import stop_job_of, stop_jobs
from harbor_refresh.tasks.jobs.turns import Turn, take
from tests.integration.concurrency import Pause, in_background, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, chained, recorded, rows, stands, tasks

pytestmark = pytest.mark.usefixtures("database")

RESUMED = "resumed"


@pytest.fixture(autouse=True)
def worker(database: str) -> None:
    beats()


def test_what_was_stopped_waits_in_a_new_revision_with_one_message(outbox: Outbox) -> None:
    execution = recorded("stopped", "done", "failed", "runs")
    recorded("of another")
    for name, status, revision, runs in [
        ("stopped", "Stopped", 2, 2),
        ("done", "Success", 0, 0),
        ("failed", "Error", 0, 0),
        ("runs", "Running", 1, 1),
        ("of another", "Stopped", 0, 0),
    ]:
        stands(name, status, revision, runs)
    outbox.take()
    before = tasks()

    assert resume_stopped(execution.pk) == 1
    assert tasks() == before | {"stopped": ("Pending", 3, 3, RESUMED)}
    assert outbox.taken() == [("stopped", 0)]
    assert resume_stopped(execution.pk) == 0
    assert outbox.take() == []


def test_a_stopped_execution_runs_again_and_its_stop_stops_no_new_run(outbox: Outbox) -> None:
    execution = TrackedExecution.objects.get(pk=recorded("a", "b").pk)
    first = {message.job: message for message in outbox.take()}
    assert begun(first["a"])
    execution.stop()
    assert execution.status == "Stopped"
    assert begun(first["b"]) is None

    assert execution.resume_stopped() == 2
    assert (execution.status, execution.end_time) == ("Running", None)
    assert all(begun(message) for message in outbox.take())


def test_a_job_that_has_not_noticed_its_stop_changes_nothing_when_it_ends(outbox: Outbox) -> None:
    execution = recorded("a")
    old = begun(*outbox.take())
    assert old
    stop_jobs(execution.pk)
    assert resume_stopped(execution.pk) == 1
    assert take([Turn(old.run, Status.SUCCESS)]) == []
    new = begun(*outbox.take())
    assert new
    assert (new.run.revision, new.run.number) == (old.run.revision + 1, 2)
    assert take([Turn(old.run, Status.STOPPED)]) == []
    assert tasks() == {"a": ("Pending", 1, 1, RESUMED)}
    assert rows() == {"a": ("running", 2)}


def test_a_stopped_chain_waits_for_its_turn_again(outbox: Outbox) -> None:
    execution = chained("a", "b", "c")
    run = begun(*outbox.take())
    assert run
    take([Turn(run.run, Status.SUCCESS, result="1")])
    stop_jobs(execution.pk)
    assert resume_stopped(execution.pk) == 2
    assert {name: one[:1] + one[3:] for name, one in tasks().items()} == {
        "a": ("Success", ""),
        "b": ("Pending", RESUMED),
        "c": ("Pending", RESUMED),
    }
    (message,) = outbox.take()
    again = begun(message)
    assert again
    assert (again.run.job, again.args) == ("b", [1, "b"])


def test_what_was_stopped_behind_a_failure_is_left_to_a_retry(outbox: Outbox) -> None:
    execution = chained("a", "b", takes_result=False)
    run = begun(*outbox.take())
    assert run
    take([Turn(run.run, Status.ERROR, "no")])
    before = tasks()
    assert before["b"][0] == "Stopped"
    assert resume_stopped(execution.pk) == 0
    assert tasks() == before
    assert retry_failed(execution.pk) == 2


def test_a_job_that_was_stopped_alone_waits_for_the_job_before_it(outbox: Outbox) -> None:
    execution = chained("a", "b", takes_result=False)
    run = begun(*outbox.take())
    assert run
    assert stop_job_of(execution.tasks.get(job_id="b").pk)
    assert resume_stopped(execution.pk) == 1
    assert (outbox.take(), rows()["b"]) == ([], ("waiting", 0))
    take([Turn(run.run, Status.ERROR, "no")])
    assert tasks()["b"][0] == "Stopped"


def test_quarantine_ends_if_there_is_something_to_resume_and_not_otherwise(outbox: Outbox) -> None:
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


def test_of_two_resumptions_at_once_one_runs_each_job_again(outbox: Outbox) -> None:
    execution = recorded("a", "b")
    stop_jobs(execution.pk)
    outbox.take()
    with Pause("deciding") as pause, in_background(lambda: resume_stopped(execution.pk)) as first:
        pause.wait_until_reached()
        with in_background(lambda: resume_stopped(execution.pk)) as second:
            wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
            pause.go_on.set()
            assert (first(), second()) == (2, 0)
    assert tasks() == dict.fromkeys("ab", ("Pending", 1, 1, RESUMED))
    assert outbox.taken() == [("a", 0), ("b", 0)]
    assert Task.objects.count() == 2
