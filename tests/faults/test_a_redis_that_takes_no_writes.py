"""Redis answers and refuses writes: it is full, cannot save, or has too few replicas. All wait, and none ends."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from executions.models import Execution
from tasks.jobs import start
from tests import servers
from tests.faults import jobs as team
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for

SNAPSHOT = servers.redis.directory / "dump.rdb"


def save(redis: Redis, status: str) -> None:
    redis.bgsave()
    wait_for(lambda: redis.info("persistence")["rdb_last_bgsave_status"] == status, "the snapshot")


def fill(redis: Redis) -> None:
    redis.config_set("maxmemory", "1mb")


def block_snapshots(redis: Redis) -> None:
    SNAPSHOT.mkdir()
    redis.config_set("save", "3600 1")
    save(redis, "err")


def ask_for_a_replica(redis: Redis) -> None:
    redis.config_set("min-replicas-to-write", 1)


def serve(redis: Redis) -> None:
    redis.config_set("maxmemory", 0)
    redis.config_set("min-replicas-to-write", 0)
    if SNAPSHOT.is_dir():
        SNAPSHOT.rmdir()
        save(redis, "ok")
        redis.config_set("save", "")
        SNAPSHOT.unlink()


@pytest.fixture(autouse=True)
def redis_serves_again(redis: Redis) -> Iterator[None]:
    yield
    serve(redis)


@pytest.mark.parametrize(
    ("refuse", "code"), [(fill, "OOM"), (block_snapshots, "MISCONF"), (ask_for_a_replica, "NOREPLICAS")]
)
def test_workers_wait_until_redis_takes_writes_again(
    cluster: Cluster,
    holds: Callable[..., None],
    redis: Redis,
    tmp_path: Path,
    refuse: Callable[[Redis], None],
    code: str,
) -> None:
    """Jobs run and wait, and executions are refreshed, as it begins; reports come and jobs are started meanwhile."""
    log = tmp_path / "jobs.txt"
    log.touch()
    cluster.beat()
    workers = [cluster.worker(name, include=["tests.faults.jobs"], JOBS_LOG=str(log)) for name in ("one", "two")]
    ids = many(300)
    start("SCAN", jobs=[team.copy.s(str(number), 0.2) for number in range(40)])
    succeed(ids[:200])
    wait_for(lambda: len(log.read_text().splitlines()) >= 8, "the jobs to be in full swing")
    refuse(redis)
    for first in range(200, 300, 10):
        succeed(ids[first : first + 10])
    start("SCAN", jobs=[team.copy.s(str(number)) for number in range(40, 50)])
    refused = f"Cannot connect to {servers.redis.url.replace('//', '//:**@')}: {code} "
    for worker in workers:
        wait_for(lambda worker=worker: worker.text().count(refused) >= 3, "three refusals", log=worker.log)
    assert Execution.objects.filter(status="Running").exists()
    assert not any(member.died() for member in cluster.members)
    serve(redis)
    holds(seconds=60)
    assert statuses() == {"Success": 302}
    assert set(log.read_text().splitlines()) == {f"copy {number}" for number in range(50)}
    assert not any(member.died() for member in cluster.members)
    assert "Unrecoverable error" not in cluster.logs()
