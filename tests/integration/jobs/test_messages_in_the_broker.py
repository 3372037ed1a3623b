"""Whether the message of a job may wait in the broker: it may, if anything waits in the queue it was sent to."""

import pytest

from tasks.jobs.lifecycle.job_creation import NewJob, start
from tasks.jobs.runtime.broker import may_wait
from tasks.models import Job
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database")


def queued(redis: Redis) -> list[str]:
    """The lists of the broker that a job is in, without what kombu adds for a priority."""
    return sorted(key.decode() for key in redis.keys("*") if redis.type(key) == b"list")


def test_a_job_may_wait_where_it_was_sent_and_nowhere_else(redis: Redis) -> None:
    options = [{}, {"queue": "slow"}, {"queue": "slow", "priority": 6}, {"queue": "other", "priority": 9}]
    start("SCAN", [[NewJob("a.job", options=one)] for one in options])
    jobs = list(Job.objects.order_by("pk"))
    keys = [job.pk for job in jobs]
    assert len(queued(redis)) == 4
    assert may_wait(jobs) == set(keys)
    for key in redis.keys("slow*"):
        redis.delete(key)
    assert may_wait(jobs) == {keys[0], keys[3]}
    redis.flushall()
    assert may_wait(jobs) == set()
