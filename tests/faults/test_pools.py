"""Each pool of Celery: jobs and refreshes succeed, and a worker that is killed leaves its work to the next."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models import Job
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

CONCURRENCY = 4
#: A process that ends after one task takes a second for each, and more on a busy machine. Beat must not send ticks
#: faster than that, and the broker must not give away again what still waits in the worker.
CALM = {
    "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": "5",
    "HARBOR_REFRESH_TEST_NODE_TTL_SECONDS": "15",
    "REFRESH_VISIBILITY_TIMEOUT_SECONDS": "30",
}
#: A message is lost if the worker is killed between taking and noting it. The reaper sends such a job again,
#: when it has been patient for thirty times the node's ttl.
RARE = {"Recover stale claims": 5, "Reconcile": 10, "Reap jobs": 10}
PATIENCE_SECONDS = 900
POOLS = {
    "processes that end after one task": ("prefork", ["--max-tasks-per-child=1"]),
    "threads": ("threads", []),
    "gevent": ("gevent", []),
    "solo": ("solo", []),
}


@pytest.mark.parametrize("name", POOLS)
def test_with_each_pool_all_succeed_and_a_killed_worker_leaves_its_work_to_the_next(
    name: str, cluster: Cluster, log: Path, holds: Callable[..., None]
) -> None:
    pool, options = POOLS[name]
    cluster.env |= CALM
    cluster.every |= RARE

    def worker(its: str) -> Member:
        return cluster.worker(
            its,
            pool=pool,
            concurrency=CONCURRENCY,
            options=options,
            include=["tests.faults.jobs"],
            JOBS_LOG=str(log),
            HARBOR_REFRESH_TEST_CHUNK="20",
        )

    def begun() -> list[str]:
        return log.read_text().split("copy ")[1:]

    beat, first = cluster.beat(), worker("first")
    names = [str(number) for number in range(30)]
    ids = many(200)
    execution = start("SCAN", jobs=[team.copy.s(one, 0.3) for one in names])
    succeed(ids[:100])
    wait_for(lambda: len(begun()) >= 3 and "Success" in statuses(), "work in progress", log=first.log)
    first.kill()
    succeed(ids[100:])
    second = worker("second")
    holds(PATIENCE_SECONDS)
    assert statuses() == {"Success": 201}
    assert {one.strip() for one in begun()} == set(names)
    assert len(begun()) <= len(names) + CONCURRENCY, "what was in progress ran again, and nothing else"
    assert Execution.objects.get(pk=execution.pk).status == "Success"
    assert set(Job.objects.values_list("task__status", flat=True)) == {"Success"}
    assert not beat.died()
    assert not second.died()


def test_what_a_killed_worker_had_fetched_is_given_back_by_an_idle_worker_of_gevent(
    cluster: Cluster, log: Path, holds: Callable[..., None]
) -> None:
    """Recovery sends the job again, and it ends. K2 and K5 hold when its first message is gone, too. The next
    worker could take more than comes, so that it never waits for room, when kombu would look."""
    cluster.every |= RARE
    cluster.env |= CALM | {"REFRESH_VISIBILITY_TIMEOUT_SECONDS": "10"}

    def worker(name: str) -> Member:
        return cluster.worker(
            name, pool="gevent", concurrency=40, include=["tests.faults.jobs"], JOBS_LOG=str(log)
        )

    cluster.beat()
    first = worker("first")
    execution = start("SCAN", jobs=[team.held.s("one")])
    wait_for(lambda: "held one" in log.read_text(), "the job to begin", log=first.log)
    first.kill()
    for run in (1, 2):
        log.with_name(f"one.{run}").touch()
    worker("second")
    holds()
    assert Execution.objects.get(pk=execution.pk).status == "Success"
