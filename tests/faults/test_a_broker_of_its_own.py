"""The broker is a server of its own. It is emptied there, and the queue and the database still hold what was sent;
or one of the two servers refuses writes for a while, because its memory is full."""

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


def claims() -> dict[str, int]:
    """The members in flight, with the moment of their claim."""
    return {token.member: token.stamp for token in execution_queue().tokens() if isinstance(token, Token)}


@pytest.mark.slow
def test_claims_and_jobs_whose_messages_are_lost_go_on(
    cluster: Cluster, broker_redis: Redis, env: dict[str, str], log: Path, holds: Callable[..., None]
) -> None:
    """No worker takes the work before it is lost, and no other message waits after that."""
    cluster.worker("ticks", queues=[TICKS], **env)
    cluster.beat(**env)
    start("SCAN", jobs=[team.copy.s(str(number)) for number in range(5)])
    succeed(many(10))
    wait_for(lambda: broker_redis.llen(WORK) and broker_redis.llen(JOBS) and len(claims()) == 10, "the messages")
    lost = claims()
    broker_redis.flushall()
    wait_for(lambda: all(claims().get(one, 0) > stamp for one, stamp in lost.items()), "each to be claimed again")
    cluster.worker("all", include=["tests.faults.jobs"], JOBS_LOG=str(log), **env)
    # K1 to K5 hold as well while a job whose message was lost waits for another one
    wait_for(lambda: statuses() == {"Success": 11}, "each execution to succeed")
    holds()
    assert set(log.read_text().splitlines()) == {f"copy {number}" for number in range(5)}


@pytest.fixture(params=["the queue", "the broker"])
def full(request: pytest.FixtureRequest, redis: Redis, broker_redis: Redis) -> Iterator[Redis]:
    """The server that is to be full."""
    server = redis if request.param == "the queue" else broker_redis
    yield server
    server.config_set("maxmemory", 0)


@pytest.mark.slow
def test_workers_wait_and_nothing_is_lost(
    cluster: Cluster, broker: EmbeddedRedis, full: Redis, log: Path, holds: Callable[..., None]
) -> None:
    with uses(servers.redis.url, broker.url) as env:
        cluster.worker(include=["tests.faults.jobs"], JOBS_LOG=str(log), **env)
        cluster.beat(**env)
        ids = many(200)
        start("SCAN", jobs=[team.copy.s(str(number), 0.1) for number in range(20)])
        succeed(ids[:100])
        wait_for(lambda: len(log.read_text().splitlines()) >= 4, "the jobs to be in full swing")
        full.config_set("maxmemory", "1mb")
        succeed(ids[100:])
        refused = full.info("stats")["total_error_replies"]
        wait_for(lambda: full.info("stats")["total_error_replies"] > refused + 20, "writes to be refused")
        full.config_set("maxmemory", 0)
        holds()
        assert statuses() == {"Success": 201}
        assert set(log.read_text().splitlines()) == {f"copy {number}" for number in range(20)}
        assert not any(member.died() for member in cluster.members)
