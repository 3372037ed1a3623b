"""Recovery of jobs of a Redis that has forgotten: what it forgot is looked up when each lease was renewed."""

from collections.abc import Callable

import pytest

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.records.record import UNKNOWN
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import LeaseAnswer, Run
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from tests.integration.jobs.sample_jobs import (
    TOO_LONG,
    Outbox,
    aged,
    alive,
    known,
    record,
    recorded,
    stands,
    unpublished,
    write,
)
from tests.integration.redis_state import MEMORY, PREFIX, Clock, Redis, signs_of_life_come

pytestmark = pytest.mark.usefixtures("database", "nodes")


def test_a_redis_that_was_emptied_knows_all_again_when_whoever_is_alive_has_told_it(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    aged(recorded("waits", "waits for another try", "is told again", "runs nowhere", "has ended"))
    aged(recorded("was to run later", options={"countdown": 3600}))
    unpublished(outbox, "was not published")
    outbox.taken()
    stands("waits for another try", "Scheduled", 1, 1)
    for job, status in (("is told again", "Running"), ("runs nowhere", "Running"), ("has ended", "Success")):
        stands(job, status)
    before = known(redis)["tasks"]

    redis.flushall()
    clock.move(5)
    signs_of_life_come(redis, since=clock.now, heard=clock.now)
    alive(redis, "live", clock)
    assert recover_jobs(outbox.publish) == Recovered(sent=1)
    assert outbox.taken() == [("was not published", 0, 0)]
    recorded("is new")
    outbox.taken()
    told = Run("is told again", Task.objects.get(job_id="is told again").pk, "live", 0, 1)
    assert job_records().renew([told], forgotten_too=True) == [LeaseAnswer.FORGOTTEN]
    clock.move(10)
    alive(redis, "live", clock)
    assert (recover_jobs(outbox.publish), outbox.taken()) == (Recovered(), [])
    new = {"is new": ("Pending", 0, 0, "")}
    assert known(redis)["tasks"] == before | new, "nothing is judged too early"

    clock.move(0.000_001)
    alive(redis, "live", clock)
    assert recover_jobs(outbox.publish) == Recovered(landed=1, sent=3)
    again = ["waits", "waits for another try", "was to run later"]
    assert [job for job, _, _ in outbox.taken()] == again
    found = known(redis)
    assert found["tasks"] == before | new
    assert {job: one.node for job, one in found["records"].items()} == {
        "is told again": "live",
        "runs nowhere": UNKNOWN,
    }

    clock.move(TOO_LONG)
    alive(redis, "live", clock)
    assert recover_jobs(outbox.publish) == Recovered(given_back=1, landed=1, sent=1)
    assert outbox.taken() == [("runs nowhere", 1, 1)]
    assert known(redis)["tasks"] == before | new | {"runs nowhere": ("Pending", 1, 1, "")}
    for seconds in (0, TOO_LONG, 60):
        clock.move(seconds)
        alive(redis, "live", clock)
        assert (recover_jobs(outbox.publish), outbox.taken()) == (Recovered(), [])


def emptied(redis: Redis) -> None:
    redis.flushall()


def lost_its_records(redis: Redis) -> None:
    redis.delete(f"{PREFIX}jobs")


def came_back_older(redis: Redis) -> None:
    epoch = redis.hget(f"{PREFIX}jobs", MEMORY).decode().partition("|")[0]
    redis.hset(f"{PREFIX}jobs", MEMORY, f"{epoch}|1")


def came_back_from_an_earlier_epoch(redis: Redis) -> None:
    redis.hset(f"{PREFIX}jobs", MEMORY, "5|999")


@pytest.mark.parametrize("happens", [emptied, lost_its_records, came_back_older, came_back_from_an_earlier_epoch])
def test_whatever_has_become_of_redis_messages_that_it_may_have_lost_are_sent_again_once(
    happens: Callable[[Redis], None], redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    aged(recorded("a", "b"))
    outbox.taken()
    clock.move(1)
    happens(redis)
    clock.set(clock.now)
    if not redis.hexists(f"{PREFIX}presence", "since"):
        signs_of_life_come(redis, since=clock.now, heard=clock.now)
    for seconds in (0, 10, TOO_LONG, TOO_LONG):
        clock.move(seconds)
        recover_jobs(outbox.publish)
    assert outbox.taken() == [("a", 0, 0), ("b", 0, 0)]
    clock.move(3600)
    assert (recover_jobs(outbox.publish), outbox.taken()) == (Recovered(), [])


def test_a_redis_that_is_as_new_as_was_noted_is_asked_for_nothing_again(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    aged(recorded("a"))
    outbox.taken()
    for _ in range(5):
        clock.move(TOO_LONG)
        assert recover_jobs(outbox.publish) == Recovered()
    assert outbox.taken() == []


def test_what_a_pass_has_seen_is_noted_so_a_redis_from_before_it_is_older(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    """Nothing was published in between."""
    recover_jobs(outbox.publish)
    seen = redis.hget(f"{PREFIX}jobs", MEMORY)
    recover_jobs(outbox.publish)
    redis.hset(f"{PREFIX}jobs", MEMORY, seen)
    epoch = job_records().memory().epoch
    redis.hset(f"{PREFIX}jobs", MEMORY, seen)
    clock.move(1)
    recover_jobs(outbox.publish)
    assert job_records().memory().epoch == clock.now > epoch


def test_a_run_whose_lease_ran_out_while_redis_was_away_is_given_back_when_it_had_time_to_renew_it(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    recorded("j")
    outbox.taken()
    stands("j", "Running")
    write(redis, record("j", node="dead", acknowledged=(0, "Running")))
    clock.move(60)
    signs_of_life_come(redis, since=clock.now, heard=clock.now)
    assert recover_jobs(outbox.publish) == Recovered()
    clock.move(10.000_001)
    assert recover_jobs(outbox.publish) == Recovered(given_back=1, landed=1, sent=1)
