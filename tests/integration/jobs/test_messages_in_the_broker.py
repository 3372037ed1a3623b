"""Whether the message of a job may wait in the broker: it may, if anything waits in the queue it was sent to. And
the queues in which jobs wait, and that no worker takes."""

import pytest

from harbor_refresh.executions.access.audit import Origin, Person
from harbor_refresh.tasks.celery_queues import JOBS
from harbor_refresh.tasks.checks.live_checks import waiting_without_worker
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.runtime.broker import may_wait
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.pauses.pauses import pause
from tests.integration.jobs.sample_jobs import chained, recorded, stands
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


def unserved(*taken: str) -> list[str]:
    return [what.removeprefix("No worker takes the queue ") for what, _ in waiting_without_worker(taken)]


def test_a_queue_with_waiting_jobs_and_no_worker_is_named(redis: Redis) -> None:
    start("SCAN", [[NewJob("a.job", options={"queue": name})] for name in ("slwo", "slwo", "slow", "routed")])
    recorded("default", "runs", "ended", "tried again")
    stands("runs", "Running")
    stands("ended", "Error")
    stands("tried again", "Scheduled", 1)
    chained("first", "has no message yet")
    assert unserved("slow", "routed") == [
        f"{JOBS}, in which 3 jobs wait: they do not begin.",
        "slwo, in which 2 jobs wait: they do not begin.",
    ]
    assert unserved("slwo", "slow", JOBS) == ["routed, in which 1 job waits: it does not begin."]
    pause(JOBS, Person("alice", Origin.ADMIN))
    assert unserved("slow", "slwo", "routed") == []
