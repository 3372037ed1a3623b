"""Workers that are alive and do not do what they should: real ones, examined while they run."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import current_app

from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.checks.facts import Workers
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from tests.faults.cluster import Cluster
from tests.integration.checks.examined import E, found
from tests.integration.redis_state import Redis
from tests.started import start
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(database, tmp_path)
    yield made
    made.end()


def found_at_last(check: str) -> list[tuple[str, str]]:
    """What the check tells as soon as it tells something: a worker may be slow to answer, or to give its first
    sign of life."""
    told: list[tuple[str, str]] = []

    def tells() -> bool:
        told[:] = found(check)
        return bool(told)

    wait_for(tells, f"{check} to tell something")
    return told


def test_queues_without_a_worker(cluster: Cluster) -> None:
    cluster.worker(concurrency=1)
    for check in ("workers.queues", "workers.tasks", "workers.answer"):
        wait_for(lambda: found(check) == [], f"{check} to find nothing")  # noqa: B023 - waited for here
    current_app.control.cancel_consumer(TICKS, reply=True)
    current_app.control.cancel_consumer(DELIVERIES, reply=True)
    wait_for(lambda: len(Workers().queues) == 1, "the worker to answer")
    queues = [
        (
            E,
            f"No worker takes the queue {TICKS}: no tick runs, so nothing is claimed, recovered or reconciled.",
        ),
        (E, f"No worker takes the queue {DELIVERIES}: no notification is sent."),
    ]
    wait_for(lambda: found("workers.queues") == queues, "exactly these to be told")

    start("SCAN", [[NewJob("a.job", options={"queue": "slwo"})]])
    told = [(E, "No worker takes the queue slwo, in which 1 job waits: it does not begin.")]
    wait_for(lambda: found("workers.jobs") == told, "the queue of the job")


def test_a_worker_whose_main_process_stands_still(cluster: Cluster) -> None:
    worker = cluster.worker(concurrency=1)
    os.kill(worker.process.pid, signal.SIGSTOP)
    try:
        ((level, what),) = found_at_last("workers.answer")
    finally:
        os.kill(worker.process.pid, signal.SIGCONT)
    assert (level, what.split(",")[0]) == (E, "Heartbeats come from 1 node")


def test_a_worker_of_another_app_that_takes_our_messages(cluster: Cluster) -> None:
    stranger = cluster.start(
        "stranger",
        [
            *[sys.executable, "-m", "celery", "-A", "tests.integration.checks.another_app", "worker"],
            *["-n", "stranger@%h", "-c", "1", "-Q", f"{WORK},{JOBS}", "-l", "INFO"],
        ],
        DJANGO_SETTINGS_MODULE="",
    )
    wait_for(lambda: " ready." in stranger.text(), "the stranger", log=stranger.log)
    ((level, what),) = found_at_last("workers.tasks")
    assert (level, what.split(" but does not know ")[0].split("@")[0]) == (E, "stranger")
    ((_, silent),) = found_at_last("workers.answer")
    assert "none of its processes sends a heartbeat" in silent
