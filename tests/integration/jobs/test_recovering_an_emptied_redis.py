"""Recovery of jobs of a Redis that was emptied: what it forgot is looked up when all who are alive have spoken."""

import pytest

from executions.models import Task
from executions.queue import Run, job_records
from executions.usecases.jobs import (
    Recovered,
    recover_jobs,
)
from executions.usecases.jobs.reaping import LOST
from tests.integration.jobs.situations import (
    NOW,
    TOO_LONG,
    Outbox,
    aged,
    alive,
    known,
    record,
    recorded,
    stands,
    state,
    unpublished,
)
from tests.integration.state import Clock, Redis

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
    alive(redis, "live", clock)
    assert recover_jobs(outbox.publish) == Recovered(sent=1)
    assert outbox.taken() == [("was not published", 0, 0)]
    recorded("is new")
    outbox.taken()
    told = Run("is told again", Task.objects.get(job_id="is told again").pk, "live", 0, 1, begun=NOW)
    assert job_records().check_in(told) is False
    clock.move(10)
    assert (recover_jobs(outbox.publish), outbox.taken()) == (Recovered(), [])
    assert known(redis)["tasks"] == before | {"is new": ("Pending", 0, 0, "")}, "nobody is lost too early"

    clock.move(0.000_001)
    alive(redis, "live", clock)
    assert recover_jobs(outbox.publish) == Recovered(landed=1, sent=3)
    again = ["waits", "waits for another try", "was to run later"]
    assert [job for job, _, _ in outbox.taken()] == again
    assert known(redis) == state(
        before | {"is new": ("Pending", 0, 0, ""), "runs nowhere": ("Error", 0, 0, LOST)},
        [record("is told again", node="live", ago=-5, landed=(0, "Running"))],
        doubts=[*again, "was not published"],
    )
    for seconds in (0, TOO_LONG, 60):
        clock.move(seconds)
        alive(redis, "live", clock)
        assert (recover_jobs(outbox.publish), outbox.taken()) == (Recovered(), [])
