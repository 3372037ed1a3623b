"""Redis forgets, is down, comes and goes, or fails over. The database knows, and reconcile asks it."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models.functions import Now
from redis import Redis

from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models.job import Job, JobState, Node
from tests import servers
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.proxy import Proxy
from tests.waiting import wait_for


def test_flushall_during_the_work_heals_itself(cluster: Cluster, holds: Callable[..., None], redis: Redis) -> None:
    """The claims, the messages and the heartbeats are gone as well."""
    ids = many(3_000)
    cluster.worker(HARBOR_REFRESH_TEST_CHUNK="20")
    cluster.beat()
    succeed(ids)
    wait_for(lambda: statuses().get("Success", 0) > 0, "the work to begin")
    redis.flushall()
    holds()
    assert statuses() == {"Success": 3_000}


@pytest.mark.slow
def test_a_job_that_was_sent_during_a_long_outage_runs_soon_after_it(
    cluster: Cluster, worker: Callable[..., Member]
) -> None:
    """Each try to send it has failed, so the next would come after five minutes."""
    member = worker()
    servers.redis.kill()
    start("SCAN", jobs=[team.copy.s("a")])
    Job.objects.update(sent_at=Now(), resent=9)
    Node.objects.update(started_at=Now() - timedelta(hours=1))
    servers.redis.start()
    wait_for(lambda: Job.objects.filter(state=JobState.ENDED).exists(), "the job", seconds=120, log=member.log)


def test_redis_stopped_between_the_commit_and_the_mark_fails_no_report(
    cluster: Cluster, holds: Callable[..., None]
) -> None:
    ids = many(50)
    crash_points.handlers.append(lambda point, _: servers.redis.kill() if point == "reported" else None)
    succeed(ids)
    crash_points.handlers.clear()
    assert not servers.redis.running
    assert statuses() == {"Running": 50}
    servers.redis.start()
    cluster.worker()
    cluster.beat()
    holds()
    assert statuses() == {"Success": 50}
    cluster.says("Reconcile found 50 drifted executions and marked them")


@pytest.mark.slow
def test_redis_restarted_five_times_in_ten_seconds_stops_no_worker_for_long(
    cluster: Cluster, holds: Callable[..., None]
) -> None:
    ids = many(4_000)
    cluster.worker("one")
    cluster.worker("two")
    cluster.beat()
    for first in range(0, 4_000, 800):
        succeed(ids[first : first + 800])
        servers.redis.kill()
        servers.redis.start()
        time.sleep(2)  # the restarts must be spread over ten seconds
    holds()
    assert statuses() == {"Success": 4_000}
    assert not any(member.died() for member in cluster.members)


@pytest.fixture
def standby(redis: Redis, tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A replica of the run's Redis, which is the primary again when the test ends."""
    with EmbeddedRedis(tmp_path / "standby") as server:
        yield server
        redis.replicaof("NO", "ONE")


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy(servers.redis.port)
    yield proxy
    proxy.close()


@pytest.mark.slow
def test_workers_follow_a_failover_and_none_ends(
    cluster: Cluster, redis: Redis, standby: EmbeddedRedis, proxy: Proxy
) -> None:
    address = f"redis://127.0.0.1:{proxy.port}/0"
    workers = [cluster.worker(name, REDIS_URL=address) for name in ("one", "two")]
    cluster.beat(REDIS_URL=address)
    ids = many(40)
    succeed(ids[:20])
    wait_for(lambda: statuses() == {"Success": 20, "Running": 20}, "the first half")
    with Redis.from_url(standby.url) as other:
        other.replicaof("127.0.0.1", servers.redis.port)
        wait_for(
            lambda: other.info("replication").get("master_link_status") == "up", "the replica to have all of it"
        )
        other.replicaof("NO", "ONE")
        proxy.target = standby.port
        redis.replicaof("127.0.0.1", standby.port)
        succeed(ids[20:])
        wait_for(lambda: statuses() == {"Success": 40}, "the second half")
    assert not any(member.died() for member in cluster.members)
    lost = "Connection to broker lost"
    wait_for(lambda: all(lost in worker.text() for worker in workers), "each worker to notice")
