"""Each pool of Celery: jobs and refreshes succeed, a worker that is killed leaves its work to the next, and jobs
share connections to the database."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.broker.celery_queues import JOBS
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
    "HARBOR_REFRESH_TEST_CHUNK": "20",
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
    name: str, cluster: Cluster, worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    pool, options = POOLS[name]
    cluster.env |= CALM
    cluster.every |= RARE
    given: dict[str, Any] = {
        "pool": pool,
        "concurrency": CONCURRENCY,
        "options": options,
        "HARBOR_REFRESH_TEST_CHUNK": "20",
    }

    def begun() -> list[str]:
        return log.read_text().split("copy ")[1:]

    was_busy = list[bool]()

    def is_in_progress() -> bool:
        """Whether jobs and refreshes have begun, and the worker was seen busy. It may be idle again by then."""
        was_busy.append(Node.objects.filter(busy__gt=0).exists())
        return any(was_busy) and len(begun()) >= 3 and "Success" in statuses()

    beat, first = cluster.beat(), worker("first", **given)
    names = [str(number) for number in range(30)]
    ids = many(200)
    execution = start("SCAN", jobs=[team.copy.s(one, 1.2) for one in names])  # longer than from beat to beat
    succeed(ids[:100])
    wait_for(is_in_progress, "a worker that says that it is busy", log=first.log)
    first.kill()
    succeed(ids[100:])
    second = worker("second", **given)
    if pool == "gevent":
        wait_for(lambda: not Job.objects.exclude(state=JobState.ENDED).exists(), "all jobs to end", log=second.log)
        # kombu's transport gives back what the first had fetched only to a worker that waits for room
        cluster.worker("of processes")
    holds(PATIENCE_SECONDS)
    assert statuses() == {"Success": 201}
    assert {one.strip() for one in begun()} == set(names)
    again = len(begun()) - len(names)
    assert again <= 4 * CONCURRENCY, "what was in progress ran again, and what had ended within the last second"
    assert Execution.objects.get(pk=execution.pk).status == "Success"
    assert set(Job.objects.values_list("task__status", flat=True)) == {"Success"}
    assert not beat.died()
    assert not second.died()


def connections_of(name: str) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", [name])
        return {pid for (pid,) in cursor.fetchall()}


@pytest.mark.parametrize("pool", ["prefork", "threads", "gevent"])
def test_jobs_share_connections_although_celery_closes_that_of_django_around_each_task(
    pool: str, cluster: Cluster, worker: Callable[..., Member]
) -> None:
    """The worker has two for its node, and two for each process; those that end while others begin may be seen."""
    jobs = worker(
        pool=pool, queues=[JOBS], PGAPPNAME="jobs", DJANGO_SETTINGS_MODULE=f"{__package__}.settings_of_a_project"
    )
    seen = set[int]()

    def have_ended() -> bool:
        seen.update(connections_of("jobs"))
        return not Job.objects.exclude(state=JobState.ENDED).exists()

    start("SCAN", jobs=[team.copy.s(str(number)) for number in range(300)])
    wait_for(have_ended, "all jobs to end", log=jobs.log)
    assert len(seen) <= 10


@pytest.mark.parametrize("pool", ["prefork", "threads", "gevent"])
def test_jobs_that_hold_all_connections_of_djangos_pool_hold_up_no_sign_of_life_and_no_begin(
    pool: str, cluster: Cluster, worker: Callable[..., Member]
) -> None:
    """The pool has four connections, and each of these jobs reads its execution, and so holds one."""
    jobs = worker(
        pool=pool,
        concurrency=6,
        queues=[JOBS],
        DJANGO_SETTINGS_MODULE=f"{__package__}.settings_of_a_pool",
    )
    start("SCAN", jobs=[team.holds_a_connection.s(str(number)) for number in range(4)])
    start("SCAN", jobs=[team.copy.s(str(number), 25.0) for number in range(2)])
    running = Job.objects.filter(state=JobState.RUNNING)
    wait_for(lambda: running.count() == 6, "all jobs to run at once", seconds=20, log=jobs.log)
    node = Node.objects.get()
    wait_for(lambda: Node.objects.filter(heard_at__gt=node.heard_at).exists(), "a sign of life", seconds=5)
    wait_for(lambda: not Job.objects.exclude(state=JobState.ENDED).exists(), "all jobs to end", log=jobs.log)
    assert set(Job.objects.values_list("run", flat=True)) == {1}
