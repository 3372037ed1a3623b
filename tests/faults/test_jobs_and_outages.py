"""PostgreSQL is down while jobs end, or the target of the hook is. It comes true when that is back.

JOBS and DOWN (seconds) in the environment make it larger; the issue of it asks for

    JOBS=1000 DOWN=60 make slow ARGS="-n 0 -s tests/faults/test_jobs_and_outages.py"
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.jobs.live_workers import TTL_SECONDS
from harbor_refresh.tasks.models.job import Node
from tests import servers
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.integration.jobs.report_receiver import Request, Target, target
from tests.standing_still import standing_still
from tests.waiting import slowness, wait_for

JOBS = int(os.environ.get("JOBS", "100"))
DOWN_SECONDS = float(os.environ.get("DOWN", "4"))
#: In a minute all is right again, on a machine that has nothing else to do.
SOON_SECONDS = 60
#: Of both workers.
PROCESSES = 4


@pytest.fixture
def workers(cluster: Cluster, worker: Callable[..., Member]) -> Callable[..., list[Member]]:
    def begin(**env: str) -> list[Member]:
        cluster.beat()
        return [worker(name, **env) for name in "ab"]

    return begin


def intake(request: Request) -> None:
    """Apply a report, as the other side of the hook does."""
    told = request.body["status"], request.body["metadata"]["revision"], request.body.get("status_message")
    report([Report(int(request.path.rpartition("/")[2]), *told)])


@pytest.fixture
def hook(cluster: Cluster) -> Iterator[Target]:
    with target() as hook:
        hook.meanwhile = intake
        yield hook
        cluster.end()  # its workers keep their connections


def started() -> Execution:
    """Half of its jobs end by themselves. The others hold on, so that they are not done before the fault comes,
    however slow this process is."""
    half = JOBS // 2
    jobs = [team.copy.s(str(number), 0.1) for number in range(half)]
    return start("SCAN", jobs=[*jobs, *(team.held.s(str(number)) for number in range(half, JOBS))])


def let_end(log: Path) -> None:
    for number in range(JOBS // 2, JOBS):
        log.with_name(f"{number}.1").touch()


def runs(log: Path) -> list[str]:
    """The name of the job of each run that has begun."""
    return [line.split()[1] for line in log.read_text().splitlines()]


def all_right_again(execution: Execution, log: Path, began: float) -> None:
    """Soon after `began`; each job was done once."""

    def is_right() -> bool:
        execution.refresh_from_db()
        return execution.status == "Success"

    left = SOON_SECONDS * slowness() - (time.monotonic() - began)
    wait_for(is_right, "the execution to be Success", seconds=left)
    assert Counter(execution.tasks.values_list("status", "run_count")) == {("Success", 0): JOBS}
    assert Counter(runs(log)) == Counter(str(number) for number in range(JOBS))
    print(f"{JOBS} jobs, down {DOWN_SECONDS:g} s: right {time.monotonic() - began:.1f} s after it is back")  # noqa: T201


def test_while_postgresql_is_down_jobs_end_and_none_begins_and_none_is_run_again_for_it(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path
) -> None:
    first, _ = workers()
    execution = started()
    wait_for(lambda: log.read_text().count("held") == PROCESSES, "a job of each process to hold on", log=first.log)
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")  # which puts their begins on disk
    connection.close()
    servers.postgres.kill()
    stopped, begun = time.monotonic(), runs(log)
    let_end(log)
    wait_for(
        lambda: time.monotonic() - stopped > DOWN_SECONDS, "it to be down for as long", seconds=DOWN_SECONDS + 1
    )
    assert runs(log) == begun, "it is not known whether they have ended"
    servers.postgres.start()
    all_right_again(execution, log, time.monotonic())
    holds()


@pytest.mark.slow
def test_jobs_that_began_as_postgresql_crashed_end(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path
) -> None:
    """The last begins were not on disk, so these jobs are sent again."""
    first, _ = workers()
    execution = start("SCAN", jobs=[team.copy.s(str(number), 0.02) for number in range(JOBS)])
    for crash in (1, 2, 3):
        wait_for(lambda crash=crash: len(runs(log)) > crash * JOBS / 4, "some to run", log=first.log)
        connection.close()
        servers.postgres.kill()
        servers.postgres.start()
    assert execution.wait(timeout=SOON_SECONDS * slowness()) == "Success"
    assert {*runs(log)} == {str(number) for number in range(JOBS)}
    holds()


@pytest.mark.slow
def test_a_postgresql_that_stands_still_makes_no_node_dead_and_no_job_run_twice(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path
) -> None:
    """It does so for four times the ttl of a node. The first heartbeats come before the second look."""
    workers()
    execution = started()
    wait_for(lambda: log.read_text().count("held") == PROCESSES, "a job of each process to hold on")
    nodes = set(Node.objects.values_list("pk", flat=True))
    connection.close()
    with standing_still(servers.postgres):
        let_end(log)
        time.sleep(4 * TTL_SECONDS)  # for so long it answers nothing
    all_right_again(execution, log, time.monotonic())
    assert set(Node.objects.values_list("pk", flat=True)) == nodes
    holds()


@pytest.mark.slow
def test_jobs_end_while_the_hook_answers_500_and_none_is_run_again_for_it(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path, hook: Target
) -> None:
    first, _ = workers(REFRESH_REPORT_URL=hook.url)
    execution = started()
    wait_for(lambda: hook.requests, "some to be reported", log=first.log)
    hook.answer, hook.meanwhile = 500, lambda _: None
    broke, told = time.monotonic(), len(hook.requests)
    let_end(log)
    patience = DOWN_SECONDS + 300
    wait_for(lambda: len(runs(log)) == JOBS, "all to be done without it", seconds=patience, log=first.log)
    wait_for(lambda: time.monotonic() - broke > DOWN_SECONDS, "it to be so for as long", seconds=patience)
    wait_for(lambda: len(hook.requests) > told, "a report to be refused", log=first.log)
    hook.answer, hook.meanwhile = 200, intake
    all_right_again(execution, log, time.monotonic())
    holds()
