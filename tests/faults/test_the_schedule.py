"""Ticks: too many, too few, paused, and from several beats. Ten thousand tasks end at one moment. An action is
killed."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from redis import Redis

from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.executions.news.audit import Origin, Person
from harbor_refresh.tasks.broker.celery_queues import JOBS, WORK
from harbor_refresh.tasks.celery_tasks import MAX_WAITING_OF_RARE
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.operations.pauses import pause, resume
from tests.faults import jobs as team
from tests.faults.cluster import ROOT, Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.integration.operations.actions import sample_bulk
from tests.integration.sample_actions import asked, result
from tests.waiting import wait_for


@pytest.mark.slow
def test_workers_down_for_ten_tick_intervals_find_no_pile_of_ticks(
    cluster: Cluster, holds: Callable[..., None], redis: Redis
) -> None:
    beat = cluster.beat()
    ids = many(200)
    succeed(ids)
    wait_for(
        lambda: beat.text().count("tasks.claim_batch") >= 10,
        "ten ticks to come due",
        log=beat.log,
    )
    assert redis.llen("harbor_refresh.ticks") <= MAX_WAITING_OF_RARE
    assert redis.llen("harbor_refresh") == 0
    begun = time.monotonic()
    worker = cluster.worker()
    holds()
    assert statuses() == {"Success": 200}
    received = worker.text().count("Task tasks.claim_batch")
    # each tick has two lines, and one comes due each second
    assert received <= 20 + 2 * (time.monotonic() - begun), "old ticks were run"


@pytest.mark.slow
def test_three_beats_do_no_more_than_one(cluster: Cluster, holds: Callable[..., None]) -> None:
    worker = cluster.worker()
    for _ in range(3):
        cluster.beat()
    ids = many(3_000)
    succeed(ids)
    holds()
    assert statuses() == {"Success": 3_000}
    assert StatusChange.objects.count() == 3_000
    ticks = worker.text().count("Task tasks.claim_batch")
    wait_for(
        lambda: worker.text().count("Task tasks.claim_batch") >= ticks + 3,
        "three more ticks",
        log=worker.log,
    )
    holds()
    assert StatusChange.objects.count() == 3_000


PROCESSES = 8


def refreshes() -> int:
    """Count the statements that locked executions for a refresh, by the count of the server."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements "
            "WHERE query LIKE '%%FOR NO KEY UPDATE OF e%%' "
            "AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.slow
def test_reports_from_eight_processes_meet_no_error_and_few_refreshes(
    cluster: Cluster, holds: Callable[..., None]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION pg_stat_statements")
    worker = cluster.worker()
    cluster.beat()
    (hot,) = many(1, tasks=10_000)
    begun = time.monotonic()
    tasks = Task.objects.filter(execution_id=hot).order_by("pk").values_list("pk", flat=True)
    task_ids = [str(pk) for pk in tasks]
    runners = subprocess.run(
        [sys.executable, "-m", "tests.faults.runner", str(PROCESSES), *task_ids],
        cwd=ROOT,
        env=cluster.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (runners.returncode, runners.stderr) == (0, "")
    holds()
    execution = Execution.objects.get(pk=hot)
    assert (execution.status, execution.revision) == ("Success", 1)
    assert " ERROR " not in worker.text()
    # while reports keep coming, two refreshes of it are up to two seconds apart
    most = 20 + (time.monotonic() - begun)
    assert 0 < refreshes() <= most, "a refresh for each of the 1,000 batches would be 1,000 and more"


@pytest.mark.slow
def test_sigkill_in_the_middle_of_an_action_costs_a_page_that_is_done_again(
    cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    ids = many(3_000)
    middle = {"point": "deciding", "act": "kill_group", "id": ids[1_600], "once": str(tmp_path / "acted")}
    victim = cluster.worker("victim", sabotage=middle)
    action = asked(vendor_type="REPLICATION")
    later = many(1)
    wait_for(victim.died, "the victim to die in the fourth page", log=victim.log)
    assert sample_bulk.statuses() == {"Stopped": 1_500, "Running": 1_501}
    cluster.worker("heir")
    cluster.beat()
    wait_for(lambda: result(action)["status"] != "Running", "the heir to end the action")
    assert result(action) == {"status": "Success", "changed": 3_000}
    assert sample_bulk.statuses() == {"Stopped": 3_000, "Running": 1}
    assert StatusChange.objects.filter(execution__in=ids).count() == 3_000
    assert Task.objects.filter(status="Stopped").count() == 3_000
    assert Execution.objects.get(pk=later[0]).status == "Running"
    holds()


ALICE = Person("alice", Origin.TERMINAL)


@pytest.mark.slow
def test_refreshing_and_jobs_stay_paused_through_a_kill_of_every_worker_and_an_emptied_redis(
    cluster: Cluster, worker: Callable[..., Member], redis: Redis, log: Path, holds: Callable[..., None]
) -> None:
    first = worker("first")
    cluster.beat()
    for queue in (WORK, JOBS):
        pause(queue, ALICE)
    first.ends_its_ticks()
    succeed(many(5))
    start("COPY", jobs=[team.copy.s("a")])
    first.kill()
    redis.flushall()
    second = worker("second")
    ticks = "Task tasks.claim_batch"
    wait_for(lambda: second.text().count(ticks) > 6, "ticks", log=second.log)
    assert (statuses(), log.read_text()) == ({"Running": 6}, "")
    for queue in (WORK, JOBS):
        resume(queue, ALICE)
    wait_for(lambda: statuses() == {"Success": 6}, "the refreshes, and the job", log=second.log)
    assert log.read_text() == "copy a\n"
    holds()
