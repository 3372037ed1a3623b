"""The broker is a server of its own. It is emptied there; the queue and the database still hold what was sent."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.broker.celery_queues import JOBS, TICKS, WORK
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.members import Token
from tests import servers
from tests.elsewhere import uses
from tests.faults import jobs as team
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path / "broker") as server:
        yield server


@pytest.fixture
def broker_redis(broker: EmbeddedRedis) -> Iterator[Redis]:
    with Redis.from_url(broker.url) as client:
        yield client


@pytest.fixture
def env(redis: Redis, broker: EmbeddedRedis) -> Iterator[dict[str, str]]:
    with uses(servers.redis.url, broker.url) as env:
        yield env


def claims() -> int:
    return sum(isinstance(token, Token) for token in execution_queue().tokens())


@pytest.mark.slow
def test_claims_and_jobs_whose_messages_are_lost_go_on(
    cluster: Cluster, broker_redis: Redis, env: dict[str, str], log: Path, holds: Callable[..., None]
) -> None:
    """No worker takes the work before it is lost, and no other message waits after that."""
    cluster.worker("ticks", queues=[TICKS], **env)
    cluster.beat(**env)
    start("SCAN", jobs=[team.copy.s(str(number)) for number in range(5)])
    succeed(many(10))
    wait_for(lambda: broker_redis.llen(WORK) and broker_redis.llen(JOBS) and claims() == 10, "the messages")
    broker_redis.flushall()
    cluster.worker("all", include=["tests.faults.jobs"], JOBS_LOG=str(log), **env)
    # K1 to K5 hold as well while a job whose message was lost waits for another one
    wait_for(lambda: statuses() == {"Success": 11}, "each execution to succeed")
    holds()
    assert set(log.read_text().splitlines()) == {f"copy {number}" for number in range(5)}
