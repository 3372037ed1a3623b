"""Any message, from any writer, in any queue of ours, is refused alone: the worker and the jobs beside it go on.

A failed run names its seed: `SEED=5 .venv/bin/pytest tests/faults/test_messages_from_any_writer.py`.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.broker.celery_queues import QUEUES
from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults import rubbish
from tests.faults.cluster import Cluster, Member
from tests.variants import variants
from tests.waiting import wait_for

SEED = int(os.environ.get("SEED", "1"))
#: A line of a refusal has at most these characters: those of a status message, and who and when.
LONGEST_LINE = 2_300


def push(redis: Redis, entries: Sequence[bytes]) -> None:
    """Push entries to every queue, among the messages that wait there."""
    chance = random.Random(SEED)
    with redis.pipeline() as pipe:
        for entry in entries:
            add = chance.choice((pipe.lpush, pipe.rpush))
            add(chance.choice(QUEUES), entry)
        pipe.execute()


def is_drained(redis: Redis) -> bool:
    return not any(redis.llen(queue) for queue in QUEUES) and not redis.hlen("unacked")


def ran(execution: Execution) -> bool:
    return not execution.tasks.exclude(status="Success").exists()


def pushed_and_read(
    cluster: Cluster, redis: Redis, log: Path, *, count: int, jobs: int, pool: str = "prefork"
) -> Member:
    """Push random messages among those of jobs, and have one worker read all. Fails if it ends, or if a message is
    not logged once."""
    good = start("SCAN", jobs=[team.copy.s(f"good {number}") for number in range(jobs)])
    push(redis, list(rubbish.messages(SEED, count)))
    member = cluster.worker(concurrency=2, pool=pool, include=["tests.faults.jobs"], JOBS_LOG=str(log))

    def are_over() -> bool:
        return member.died() or (is_drained(redis) and ran(good))

    wait_for(are_over, f"the messages of seed {SEED} to be read", seconds=600, log=member.log)
    assert not member.died(), f"seed {SEED}: the worker has ended"
    text = member.text()
    assert "consumer: Connection to broker lost" not in text, f"seed {SEED}"
    lines = text.splitlines()
    refused = [line for line in lines if rubbish.REFUSED.search(line)]
    received = [line for line in lines if rubbish.RECEIVED.search(line)]
    assert refused
    assert received
    assert len(refused) + len(received) == count, f"seed {SEED}"
    assert max(map(len, refused)) <= LONGEST_LINE, f"seed {SEED}"
    return member


def test_any_message_is_refused_alone(cluster: Cluster, redis: Redis, log: Path) -> None:
    pushed_and_read(cluster, redis, log, count=300, jobs=10)


@pytest.mark.slow
@pytest.mark.parametrize("pool", variants("prefork", "threads", "solo"))
def test_any_of_ten_thousand_messages_is_refused_alone(
    cluster: Cluster, redis: Redis, log: Path, pool: str
) -> None:
    pushed_and_read(cluster, redis, log, count=10_000, jobs=100, pool=pool)
