"""A planned failover behind one address: the old primary lives on as a replica, and closes no connection."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.local.redis import EmbeddedRedis
from tests import servers
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.proxy import Proxy
from tests.waiting import wait_for


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
