"""Each pool of Celery: jobs and refreshes succeed, and a worker that is killed leaves its work to the next."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.job import JobState, Node
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
RARE = {"Recover stale claims": 5, "Reconcile": 10}
PATIENCE_SECONDS = 900
POOLS = {
    "processes that end after one task": ("prefork", ["--max-tasks-per-child=1"]),
    "processes that are spawned": ("prefork", ["--", "worker.pool_start_method=spawn"]),
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
    wait_for(Node.objects.filter(busy__gt=0).exists, "the worker to say that it is busy", log=first.log)
    first.kill()
    succeed(ids[100:])
    second = worker("second")
    if pool == "gevent":
        wait_for(lambda: not Job.objects.exclude(state=JobState.ENDED).exists(), "all jobs to end", log=second.log)
        cluster.worker("of processes")  # what the first had fetched may be with the broker for ever, see below
    holds(PATIENCE_SECONDS)
    assert statuses() == {"Success": 201}
    assert {one.strip() for one in begun()} == set(names)
    again = len(begun()) - len(names)
    assert again <= 4 * CONCURRENCY, "what was in progress ran again, and what had ended within the last second"
    assert Execution.objects.get(pk=execution.pk).status == "Success"
    assert set(Job.objects.values_list("task__status", flat=True)) == {"Success"}
    assert not beat.died()
    assert not second.died()


def test_the_job_of_a_killed_worker_of_gevent_runs_on_an_idle_one(cluster: Cluster, log: Path) -> None:
    """It is sent again. The message that the first worker had fetched stays with the broker, and begins nothing:
    kombu's transport gives it back only to a worker that waits for room."""
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
    second = worker("second")
    assert execution.wait(timeout=300) == "Success"
    assert len(log.read_text().splitlines()) == 2
    assert not second.died()
