"""Redis answers and refuses writes: it is full, cannot save, or has too few replicas. All wait, and none ends."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from tests import servers
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for

SNAPSHOT = servers.redis.directory / "dump.rdb"


def save(redis: Redis, status: str) -> None:
    redis.bgsave()
    wait_for(lambda: redis.info("persistence")["rdb_last_bgsave_status"] == status, "the snapshot")


def fill(redis: Redis) -> None:
    redis.config_set("maxmemory", "1mb")


def block_snapshots(redis: Redis) -> None:
    """A folder stands where the snapshot is to be written."""
    SNAPSHOT.mkdir()
    redis.config_set("save", "3600 1")
    save(redis, "err")


def ask_for_a_replica(redis: Redis) -> None:
    redis.config_set("min-replicas-to-write", 1)


@dataclass
class Refusal:
    redis: Redis
    refuse: Callable[[Redis], None]
    code: str

    def begin(self) -> None:
        self.refuse(self.redis)

    def end(self) -> None:
        self.redis.config_set("maxmemory", 0)
        self.redis.config_set("min-replicas-to-write", 0)
        if SNAPSHOT.is_dir():
            SNAPSHOT.rmdir()
            save(self.redis, "ok")
            self.redis.config_set("save", "")
            SNAPSHOT.unlink()


@pytest.fixture(
    params=[
        pytest.param((fill, "OOM"), id="it is full"),
        pytest.param((block_snapshots, "MISCONF"), id="it cannot save", marks=pytest.mark.slow),
        pytest.param((ask_for_a_replica, "NOREPLICAS"), id="it has no replica", marks=pytest.mark.slow),
    ],
)
def refusal(redis: Redis, request: pytest.FixtureRequest) -> Iterator[Refusal]:
    refusal = Refusal(redis, *request.param)
    yield refusal
    refusal.end()


@pytest.fixture
def workers(cluster: Cluster, log: Path) -> list[Member]:
    cluster.beat()
    return [cluster.worker(name, include=["tests.faults.jobs"], JOBS_LOG=str(log)) for name in ("one", "two")]


@pytest.mark.slow
def test_workers_wait_until_redis_takes_writes_again(
    cluster: Cluster, workers: list[Member], log: Path, refusal: Refusal, holds: Callable[..., None]
) -> None:
    """Jobs run and wait, and executions are refreshed, as it begins; reports come and jobs are started then."""
    ids = many(300)
    start("SCAN", jobs=[team.copy.s(str(number), 0.2) for number in range(40)])
    succeed(ids[:200])
    wait_for(lambda: len(log.read_text().splitlines()) >= 8, "the jobs to be in full swing")
    refusal.begin()
    for first in range(200, 300, 10):
        succeed(ids[first : first + 10])
    start("SCAN", jobs=[team.copy.s(str(number)) for number in range(40, 50)])
    refused = f"Cannot connect to {servers.redis.url.replace('//', '//:***@')}: {refusal.code} "
    for worker in workers:
        wait_for(lambda worker=worker: worker.text().count(refused) >= 3, "three refusals", log=worker.log)
    assert Execution.objects.filter(status="Running").exists()
    assert not any(member.died() for member in cluster.members)
    refusal.end()
    holds()
    assert statuses() == {"Success": 302}
    assert set(log.read_text().splitlines()) == {f"copy {number}" for number in range(50)}
    assert not any(member.died() for member in cluster.members)
