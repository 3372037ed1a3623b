"""Workers that have ended, and what they leave: `harbor marks export --set` puts each of their claims back into
Harbor's set, where its cores take it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.pipeline.legacy_marks import legacy_marks
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.keys import HARBORS_SET
from harbor_refresh.tasks.queue.members import Token
from tests.faults.cluster import Cluster, Member
from tests.harbor.databases import ATTACHED
from tests.harbor.rows import asked, execution, task
from tests.integration.command_output import data, said
from tests.waiting import wait_for

OURS = "cache:execution:refresh:"

# in this process


@pytest.mark.usefixtures("attached")
def test_an_export_of_the_set_moves_the_claims_and_leaves_the_marks_of_harbor(redis: Redis) -> None:
    """One claim waits, one is in progress, one is of an execution that Harbor has marked again."""
    queue = execution_queue()
    queue.mark(["1:A", "2:B", "3:C"])
    claim = queue.claim("me", 10).claim
    in_progress = queue.take_over(claim.only(["2:B"]), "other")
    redis.hset(f"{OURS}attempts", "1:A", 2)
    redis.sadd(HARBORS_SET, "3:C", "4:D", "of another program")
    queue.leave("me")
    queue.leave("other")
    assert data("harbor", "marks", "export", "--set") == {"moved": 3, "left": 0}
    assert redis.smembers(HARBORS_SET) == {b"1:A", b"2:B", b"3:C", b"4:D", b"of another program"}
    assert not redis.exists(f"{OURS}processing", f"{OURS}attempts")
    assert {one for one, _ in queue.oldest_waiting(10)} == {"1:A", "2:B", "3:C"}
    assert queue.complete(in_progress).claim_expired == 1
    late = Claim.from_message(claim.to_message())
    assert queue.take_over(late, "late").members == (), "its message finds the tokens gone"
    assert said("harbor", "marks", "export", "--set") == "Turned 0 executions into marks of Harbor."


@pytest.mark.usefixtures("attached")
def test_an_export_to_a_set_that_redis_refuses_to_write_leaves_the_claims(redis: Redis) -> None:
    queue = execution_queue()
    queue.mark(["1:A"])
    queue.claim("me", 1)
    before = redis.smembers(f"{OURS}processing")
    redis.set(HARBORS_SET, "of another program")
    with pytest.raises(QueueUnavailable, match="WRONGTYPE"):
        list(legacy_marks().export(as_set=True))
    assert redis.smembers(f"{OURS}processing") == before


# in processes

#: Nothing is recovered, and no tick of the schedule comes, while the test runs.
PATIENCE = {
    "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": "3600",
    "HARBOR_REFRESH_TEST_HEARTBEAT_SECONDS": "0.2",
    "HARBOR_REFRESH_TEST_NODE_TTL_SECONDS": "2",
    "HARBOR_REFRESH_TEST_CHUNK": "10",
    "HARBOR_REFRESH_TEST_DEPTH": "10",
}


@pytest.fixture
def cluster(attached: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(attached, tmp_path)
    cluster.env |= ATTACHED
    yield cluster
    cluster.end()


@pytest.fixture
def busy(cluster: Cluster, redis: Redis, tmp_path: Path) -> tuple[Member, Path]:
    """A worker whose one process works on a claim until the file exists, while messages wait in the broker."""
    ids = [execution() for _ in range(300)]
    for of in ids:
        task(of, "Success")
    redis.sadd(HARBORS_SET, *members(ids))
    reached, go_on = tmp_path / "reached", tmp_path / "go on"
    plan = {"point": "deciding", "act": "wait", "once": str(reached), "until": str(go_on)}
    worker = cluster.worker(concurrency=1, sabotage=plan, **PATIENCE)
    wait_for(lambda: reached.exists() and redis.llen(WORK) > 3, "work in full swing", log=worker.log)
    return worker, go_on


def members(ids: list[int]) -> set[str]:
    return {f"{of}:REPLICATION" for of in ids}


def unrefreshed() -> set[str]:
    return members([of for (of,) in asked("SELECT id FROM execution WHERE status = 'Running'")])


def end_by_sigterm(worker: Member, go_on: Path) -> None:
    os.kill(worker.process.pid, signal.SIGTERM)
    wait_for(lambda: "Warm shutdown" in worker.text(), "the warm shutdown to begin", log=worker.log)
    go_on.touch()
    wait_for(worker.died, "the worker to end", log=worker.log)
    assert worker.process.returncode == 0


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_under_load_leaves_its_messages_to_the_next(
    busy: tuple[Member, Path], cluster: Cluster, redis: Redis
) -> None:
    end_by_sigterm(*busy)
    assert redis.hlen("unacked") == 0
    assert {isinstance(token, Token) and token.is_waiting for token in execution_queue().tokens()} == {True}
    heir = cluster.worker("heir", **PATIENCE)
    wait_for(lambda: not unrefreshed(), "the heir to refresh the rest", log=heir.log)
    wait_for(lambda: not redis.exists(HARBORS_SET, f"{OURS}processing"), "the claims to be completed")
    assert asked("SELECT count(*), count(DISTINCT execution_id) FROM execution_status_change") == [(300, 300)]
