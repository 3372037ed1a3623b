"""What Flower sees: a worker tells of each task, many in one message, and of the last one before it ends."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis

from harbor_refresh.celery import app
from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.waiting import wait_for

JOBS = 200
WORDS = ("task-received", "task-started", "task-succeeded")


@pytest.fixture
def seen(cluster: Cluster) -> Iterator[Counter[str]]:
    """The events of the jobs by their type, as Flower receives them."""
    seen: Counter[str] = Counter()
    ours: set[str] = set()
    is_ready, is_over = threading.Event(), threading.Event()

    def note(event: dict[str, Any]) -> None:
        if event.get("name") == team.copy.name:
            ours.add(event["uuid"])
        if event.get("uuid") in ours:
            seen[event["type"]] += 1

    def watch() -> None:
        with app.connection_for_read() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": note})
            with receiver.consumer_context(wakeup=False) as (own, _, _):
                is_ready.set()
                while not is_over.is_set():
                    with suppress(TimeoutError):
                        own.drain_events(timeout=0.2)

    thread = threading.Thread(target=watch)
    thread.start()
    is_ready.wait(60)
    yield seen
    is_over.set()
    thread.join()


def all_of(jobs: int) -> Counter[str]:
    return Counter(dict.fromkeys(WORDS, jobs))


def worker_of(cluster: Cluster) -> Member:
    return cluster.worker(include=["tests.faults.jobs"], JOBS_LOG=str(cluster.directory / "jobs.log"))


def published(redis: Redis) -> int:
    return int(redis.info("commandstats").get("cmdstat_publish", {"calls": 0})["calls"])


@pytest.mark.slow
def test_all_events_arrive_in_fewer_messages_than_there_are_jobs(
    cluster: Cluster, redis: Redis, seen: Counter[str]
) -> None:
    worker_of(cluster)
    before = published(redis)
    start("SCAN", jobs=[team.copy.s(str(number)) for number in range(JOBS)])
    wait_for(lambda: seen == all_of(JOBS), f"the events of all jobs among {seen}")
    assert published(redis) - before < JOBS


@pytest.mark.slow
def test_a_worker_that_ends_tells_of_the_job_that_it_has_finished(cluster: Cluster, seen: Counter[str]) -> None:
    worker = worker_of(cluster)
    start("SCAN", jobs=[team.copy.s("one", 2.0)])
    wait_for(lambda: seen["task-started"] == 1, "the job to begin", log=worker.log)
    os.kill(worker.process.pid, signal.SIGTERM)
    wait_for(worker.died, "the worker to end", log=worker.log)
    wait_for(lambda: seen == all_of(1), f"the end of the job among {seen}")
