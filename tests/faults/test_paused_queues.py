"""Paused queues and real workers: a pause outlives the worker, its connection and Redis."""

from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.access.audit import Origin, Person
from harbor_refresh.tasks.broker.celery_queues import JOBS, WORK
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.operations.pauses import pause, resume
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for

ALICE = Person("alice", Origin.TERMINAL)


def refreshes_work(member: Member) -> None:
    """A job that the worker may take would have been taken by the time that this refresh has come back."""
    before = statuses().get("Success", 0)
    succeed(many(1))
    wait_for(lambda: statuses().get("Success", 0) > before, "a refresh", log=member.log)


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_a_paused_queue_of_jobs_stays_paused_through_a_kill_a_broken_connection_and_an_emptied_redis(
    worker: Callable[..., Member], redis: Redis, log: Path, holds: Callable[..., None], pool: str
) -> None:
    execution = start("COPY", jobs=[team.copy.s("a")])
    assert Job.objects.get().state == "sent"
    pause(JOBS, ALICE)
    first = worker("first", pool=pool)
    refreshes_work(first)
    first.kill()
    second = worker("second", pool=pool)
    refreshes_work(second)
    assert (Job.objects.get().state, log.read_text()) == ("waiting", "")

    def is_broken() -> bool:
        """Cut the connections, again and again: the client mends one that no command waits on without a word."""
        redis.client_kill_filter(_type="normal", skipme=True)
        return "Connection to broker lost" in second.text()

    wait_for(is_broken, "the connection to break", log=second.log)
    refreshes_work(second)
    assert (Job.objects.get().state, log.read_text()) == ("waiting", "")
    resume(JOBS, ALICE)
    wait_for(lambda: log.read_text() == "copy a\n", "the job", log=second.log)
    wait_for(lambda: execution.tasks.filter(status="Success").exists(), "its report", log=second.log)
    holds()


@pytest.mark.slow
def test_refreshing_stays_paused_through_a_kill_of_every_worker_and_an_emptied_redis(
    cluster: Cluster, redis: Redis, holds: Callable[..., None]
) -> None:
    first = cluster.worker("first")
    cluster.beat()
    pause(WORK, ALICE)
    first.ends_its_ticks()
    ids = many(5)
    succeed(ids)
    first.kill()
    redis.flushall()
    second = cluster.worker("second")
    ticks = "Task tasks.claim_batch"
    wait_for(lambda: second.text().count(ticks) > 6, "ticks", log=second.log)
    assert "Success" not in statuses()
    resume(WORK, ALICE)
    wait_for(lambda: statuses() == {"Success": 5}, "the refresh", log=second.log)
    holds()
