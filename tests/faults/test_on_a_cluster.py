"""The queue on a Cluster of three, the broker on a server of its own: a replica takes over in the middle."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.tasks.queue.connection import connect
from tests import servers
from tests.elsewhere import uses
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.faults.takeovers import work_through_takeovers
from tests.redis_cluster import PREFIX, RedisCluster, redis_cluster

TIMES = 2


@pytest.fixture
def made(tmp_path: Path) -> Iterator[RedisCluster]:
    with redis_cluster(tmp_path) as made:
        yield made


@pytest.fixture
def broker_redis() -> Iterator[Redis]:
    with Redis.from_url(servers.redis.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def env(made: RedisCluster, broker_redis: Redis) -> Iterator[dict[str, str]]:
    with uses(made.url, servers.redis.url, prefix=PREFIX) as env:
        yield env


@pytest.fixture
def redis(made: RedisCluster, env: dict[str, str]) -> Iterator[Redis]:
    with connect(made.url, 5, tries=4) as client:
        yield client


@pytest.mark.slow
def test_everything_holds_after_replicas_took_over_in_the_middle(
    cluster: Cluster, made: RedisCluster, env: dict[str, str], log: Path, holds: Callable[..., None]
) -> None:
    """Each time the primary of the queue is killed while jobs and refreshes are under way, and while others are
    reported. It comes back as the replica of the new one."""
    work_through_takeovers(
        TIMES,
        cluster,
        env,
        log,
        primary=made.owner,
        is_replaced=lambda killed: made.owner() is not killed and made.is_whole(),
        is_back=lambda killed: killed.follows(made.owner()),
        holds=holds,
    )


@pytest.mark.slow
def test_everything_holds_after_the_slot_of_the_queue_has_moved_in_the_middle(
    cluster: Cluster, made: RedisCluster, env: dict[str, str], holds: Callable[..., None]
) -> None:
    cluster.worker(**env)
    cluster.beat(**env)
    ids = many(200)
    succeed(ids[:50])
    target = next(node for node in made.nodes[:3] if node is not made.owner())
    for _ in made.move_slot(target):
        succeed(ids[50:150])
    succeed(ids[150:])
    holds()
    assert statuses() == {"Success": 200}
    assert made.owner() is target
    assert not any(member.died() for member in cluster.members)
