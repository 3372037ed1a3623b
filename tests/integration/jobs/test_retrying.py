"""retry_failed: what failed, and what was stopped for it in a chain, waits for another run in a new revision."""

import pytest

from executions.errors import AlreadyUnderWay
from executions.models import Job
from executions.queue import Run, Verdict, job_records
from executions.usecases import stop
from executions.usecases.jobs import (
    Message,
    NewJob,
    Recovered,
    Turn,
    begin,
    land,
    recover_jobs,
    retry_failed,
    start,
    stop_jobs,
)
from tasks.jobs import header
from tests.integration.jobs.situations import NOW, Outbox, aged, chained, recorded, stands, state, write
from tests.integration.jobs.situations import known as all_known
from tests.integration.jobs.situations import record as record_of
from tests.integration.state import Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "clock")

TRIED = "tried again"


def begun(message: Message, node: str = "n") -> tuple[Verdict, Run]:
    """What becomes of a message that a worker gets."""
    found = begin(header.offer(message.job, header.of(message)[header.NAME]), node)
    return found.verdict, found.run


def test_what_failed_waits_in_a_new_revision_with_one_message(redis: Redis, outbox: Outbox) -> None:
    execution, _ = recorded("failed", "done", "stopped", "runs"), recorded("of another")
    outbox.taken()
    for job, status, revision, runs in [
        ("failed", "Error", 2, 2),
        ("done", "Success", 0, 0),
        ("stopped", "Stopped", 0, 0),
        ("runs", "Running", 1, 1),
        ("of another", "Error", 0, 0),
    ]:
        stands(job, status, revision, runs)
    before = all_known(redis)["tasks"]

    assert retry_failed(execution.pk) == 1
    assert all_known(redis) == state(before | {"failed": ("Pending", 3, 3, TRIED)})
    assert outbox.taken() == [("failed", 3, 3)]
    assert retry_failed(execution.pk) == 0
    assert outbox.taken() == []


def test_a_copy_of_its_first_message_runs_it_in_the_revision_it_is_tried_again_in(outbox: Outbox) -> None:
    execution = recorded("j", max_attempts=1)
    (first,) = outbox.messages
    stands("j", "Error")
    outbox.taken()
    retry_failed(execution.pk)
    (second,) = outbox.messages
    verdict, run = begun(first)
    assert (verdict, run.revision, run.runs) == (Verdict.GO, 1, 2)
    assert begun(second)[0] == Verdict.ALIVE


def runs_until_it_is_exhausted(message: Message) -> tuple[int, Run]:
    """A message that each time ends in another try: how often it began, and the run that did not."""
    for count in range(99):
        verdict, run = begun(message)
        if verdict != Verdict.GO:
            assert verdict == Verdict.EXHAUSTED
            return count, run
        revision = job_records().settle(run, "Scheduled", "OSError")
        assert revision == run.revision + 1
        land([Turn(message.job, message.task_id, revision, "Scheduled", "OSError")])
    raise AssertionError("it is never exhausted")


def test_it_has_all_its_attempts_again_and_no_more_each_time_it_is_tried_again(
    redis: Redis, outbox: Outbox
) -> None:
    execution = recorded("j", max_attempts=3)
    for _ in range(3):
        (message,) = outbox.messages
        outbox.taken()
        count, run = runs_until_it_is_exhausted(message)
        assert count == 3
        why = job_records().of(["j"])["j"].message
        assert why.endswith("times, which is as often as it may: see max_attempts")
        land([Turn("j", message.task_id, run.revision, "Error", why)])
        assert all_known(redis)["tasks"] == {"j": ("Error", run.revision, run.revision, why)}
        assert all_known(redis)["records"] == {}
        assert retry_failed(execution.pk) == 1


def test_an_end_that_is_not_acknowledged_yet_swallows_no_new_message(redis: Redis, outbox: Outbox) -> None:
    """Its worker died after the commit. Recovery then finds a run that is going on, and leaves it."""
    execution = recorded("j")
    outbox.taken()
    stands("j", "Error")
    write(redis, record_of("j", "Error", node="gone", ago=60, landed=(0, "Running")))
    redis.zadd("cache:execution:refresh:nodes", {"n": NOW})
    assert retry_failed(execution.pk) == 1
    verdict, run = begun(outbox.messages[0])
    assert (verdict, run) == (Verdict.GO, Run("j", execution.tasks.get().pk, "n", 1, 2))
    outbox.taken()
    assert recover_jobs(outbox.publish) == Recovered()
    runs = record_of("j", revision=1, node="n", runs=2)
    assert all_known(redis) == state({"j": ("Pending", 1, 1, TRIED)}, [runs])


def test_an_end_that_is_acknowledged_late_ends_no_run_that_came_after_it(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("j")
    stands("j", "Error")
    write(redis, record_of("j", "Error", node="gone", ago=60))
    outbox.taken()
    retry_failed(execution.pk)
    assert recover_jobs(outbox.publish) == Recovered(landed=1), "the end of the run before"
    assert all_known(redis) == state({"j": ("Pending", 1, 1, TRIED)})
    verdict, run = begun(outbox.messages[0])
    assert (verdict, run.revision, run.runs) == (Verdict.GO, 1, 2)
    assert len(outbox.taken()) == 1


def test_a_stop_before_it_is_no_stop_of_it(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("failed", "stopped")
    first = {message.job: message for message in outbox.messages}
    outbox.taken()
    stop_jobs(execution.pk)
    stands("failed", "Error", 0, 0)
    assert retry_failed(execution.pk) == 1
    assert begun(outbox.messages[0])[0] == Verdict.GO
    assert begun(first["stopped"])[0] == Verdict.OVER


def test_the_rest_of_its_chain_waits_for_its_turn_again(redis: Redis, outbox: Outbox) -> None:
    execution = chained("a", "b", "c", "d")
    a = execution.tasks.get(job_id="a").pk
    b = execution.tasks.get(job_id="b").pk
    land([Turn("a", a, 0, "Success", result=1)])
    land([Turn("b", b, 0, "Error", "ValueError: no")])
    outbox.taken()
    assert retry_failed(execution.pk) == 3
    waits = dict.fromkeys("bcd", ("Pending", 1, 1, TRIED))
    assert all_known(redis) == state({"a": ("Success", 0, 0, "")} | waits, unpublished=["c", "d"])
    assert outbox.taken() == [("b", 1, 1)]
    assert recover_jobs(outbox.publish) == Recovered()
    land([Turn("b", b, 1, "Success", result=2)])
    assert outbox.taken() == [("c", 1, 1)]
    args = [job.args for job in Job.objects.order_by("pk")]
    assert args == [["a"], [1, "b"], [2, "c"], ["d"]]


def test_what_was_stopped_behind_something_that_did_not_fail_is_left(redis: Redis, outbox: Outbox) -> None:
    execution = chained("a", "b")
    stop(execution.pk)
    before = all_known(redis)
    assert retry_failed(execution.pk) == 0
    assert all_known(redis) == before


def test_its_execution_runs_again(outbox: Outbox, redis: Redis) -> None:
    execution = recorded("j")
    stands("j", "Error")
    retry_failed(execution.pk)
    queued = redis.smembers("cache:execution:refresh:queue:v2")
    assert queued == {f"{execution.pk}:SCAN".encode()}


def test_who_dies_before_the_message_is_out_leaves_it_to_recovery(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    execution = recorded("j")
    outbox.taken()
    stands("j", "Error")
    outbox.is_away = True
    assert retry_failed(execution.pk) == 1
    aged(execution)
    assert all_known(redis) == state({"j": ("Pending", 1, 1, TRIED)}, unpublished=["j"])
    assert [recover_jobs(outbox.publish) for _ in range(2)] == [Recovered(sent=1), Recovered()]
    assert outbox.taken() == [("j", 1, 1)]


def test_a_unique_job_is_not_tried_again_beside_another_and_takes_its_key_again(outbox: Outbox) -> None:
    def unique() -> list[NewJob]:
        return [NewJob("a.job", ["x"], is_unique=True), NewJob("b.job")]

    first = start("SCAN", [unique()]).execution
    land([Turn(one.job_id, one.pk, 0, "Error") for one in first.tasks.order_by("pk")[:1]])
    second = start("SCAN", [unique()]).execution
    assert retry_failed(first.pk) == 0
    land([Turn(one.job_id, one.pk, 0, "Error") for one in second.tasks.order_by("pk")[:1]])
    assert retry_failed(first.pk) == 2
    with pytest.raises(AlreadyUnderWay):
        start("SCAN", [unique()])
    assert retry_failed(second.pk) == 0
