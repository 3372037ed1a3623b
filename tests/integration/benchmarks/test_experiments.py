"""The experiments of the bench that report: tiny real runs, with real reporters and real workers."""

import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from benchmarks.experiments import backlog, deliveries, freshness, hooks, intake, jobs, reports
from benchmarks.experiments.jobs import LEAN, OURS, STOCK
from benchmarks.ready_cluster import ready_cluster
from benchmarks.reporter import Assignment, report_all
from benchmarks.screen import Screen
from benchmarks.servers import ROOT, Servers, environment
from benchmarks.unfinished_executions import prepare
from benchmarks.watcher import Watcher
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news.deliveries.sender import CONNECTIONS
from harbor_refresh.tasks.celery_tasks import recover_stale
from harbor_refresh.tasks.queue import execution_queue
from tests import servers
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {
    **{"executions": 20, "tasks_per_execution": 3, "nodes": 1, "workers": 1, "concurrency": 1, "budget": 60.0},
    **{"processes": None, "batches": None, "tasks": 100, "rounds": 5, "strategies": ["claim"], "sizes": [40, 80]},
    **{"rates": [20], "seconds": 1.0, "interval": 2.0, "jobs": 20, "passes": 2},
}

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def bench_servers(database: str, redis: Redis, tmp_path: Path) -> Servers:
    """The servers of the test as they are: nothing is started, and nothing is removed at the end."""
    bench_servers = Servers()
    bench_servers.database_url, bench_servers.redis_url = servers.postgres.url_for(database), servers.redis.url
    bench_servers.environ = environment(bench_servers.database_url, bench_servers.redis_url)
    bench_servers.directory = tmp_path
    return bench_servers


@pytest.fixture
def run(bench_servers: Servers) -> Run:
    def measure(experiment: Any, **options: Any) -> list[dict[str, Any]]:
        screen = Screen(experiment.__name__, {}, None)
        rows = experiment.run(bench_servers, Namespace(**{**OPTIONS, **options}), screen)
        told = [row.as_json() for row in rows]
        for key, _ in experiment.COLUMNS:
            assert any(key in row for row in told), f"no row has the column {key}"
        return told

    return measure


def test_reports_become_visible_with_the_wake_up_and_by_the_schedule_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "WARM_UP_SECONDS", 0.2)
    rows = run(freshness)
    assert [(row["wake_up"], row["interval"]) for row in rows] == [(True, 30.0), (False, 2.0)]
    for row in rows:
        assert (row["reports"], row["unseen"], row["errors"], row["cut"]) == (20, 0, 0, False)
        assert 0 < row["p50"] <= row["p95"] <= row["p99"] <= row["max"]
    assert not Execution.objects.exclude(status="Success").exists()


def test_a_worker_without_the_wake_up_sends_no_tick_when_work_waits(bench_servers: Servers) -> None:
    with ready_cluster(bench_servers, Namespace(workers=1, concurrency=1), wake_up=False, interval=600.0):
        log = next(bench_servers.directory.glob("processes*/worker1.log"))

        def calls() -> int:
            return log.read_text().count("Task tasks.recover_stale[") // 2  # received, succeeded

        execution_queue().mark(["1:REPLICATION"])
        execution_queue().tick_has_ended()  # the next process that sees the queue has a reason to send a tick
        for _ in range(2):  # a tick sent during the first call is consumed before the second call
            before = calls()
            recover_stale.apply_async()
            wait_for(lambda: calls() > before, "the next recover_stale", log=log)  # noqa: B023 - waited for here
        assert "Task tasks.claim_batch[" not in log.read_text()
        assert execution_queue().stats().backlog == 1


def test_bulk_reports_are_all_applied_and_mark_each_execution_once(run: Run) -> None:
    single, together = run(reports, batches=[1, 50])
    for row in (single, together):
        assert (row["reports"], row["marked"], row["errors"], row["cut"]) == (60, 20, 0, False)
    assert Task.objects.filter(status="Success").count() == 120
    assert together["sql_statements"] < single["sql_statements"]


def test_reads_and_bulk_reports_over_http_are_timed_by_the_server(run: Run) -> None:
    *read, written = run(intake, processes=2, rounds=3, executions=60)
    assert len(read) == 3 + 2 * len(intake.FILTERS)
    assert all(row["asked"] == 3 and 0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] for row in read)
    assert all(1 <= row["statements"] <= 5 for row in read), "the limit"
    items = {row["what"]: row["items"] for row in read}
    assert items["list, no filter, first page"] == 60
    assert items["list, status, 5 in 100, first page"] == 3
    assert items["list, status that there is not, first page"] == 0
    assert (written["reports"], written["marked"]) == (180, 60)


@pytest.mark.filterwarnings("ignore:Call to deprecated setex")  # Celery's backend saves a group with it
def test_jobs_are_run_tracked_and_plain_by_each_worker_and_their_progress_is_measured(
    run: Run, bench_servers: Servers
) -> None:
    rows = run(jobs, tasks=30)
    assert [(row["what"], row.get("worker"), row["jobs"], row["times"]) for row in rows] == [
        *(("running", worker, 20, 2) for worker in (OURS, STOCK, LEAN) for _ in range(2)),
        *(("starting", None, 30, 2), ("starting", None, 30, 2), ("starting", None, 30, 2)),
        *(("progress", None, 30, 5), ("progress", None, 30, 5)),
    ]
    assert all(0 < row["least"] <= row["seconds"] + 1e-5 <= row["most"] + 2e-5 for row in rows)
    for tracked, plain in (rows[0:2], rows[2:4], rows[4:6]):
        for row in (tracked, plain):
            assert row["over_plain_celery_percent"] == over(row, rows[5])
            assert row["over_same_worker_percent"] == over(row, plain)
        for counted in ("redis_commands_each", "sql_each"):
            assert tracked[counted] > plain[counted], counted
    # So few jobs may differ by less than a tick of the clock of processes.
    assert min(row["cpu_ms_each"] for row in rows[:6]) > 0
    recorded, published = rows[6:8]
    assert recorded["seconds"] < published["seconds"]
    assert Task.objects.filter(status="Success").count() == 3 * (20 + 2 * 20) + 30, "the first passes warm up"
    assert not Execution.objects.exclude(status="Success").exists()
    for name in ("worker1", "stock1", "lean1"):
        (log,) = bench_servers.directory.glob(f"processes*/{name}.log")
        assert log.read_text().count("Task bench.plain[") == 2 * (20 + 2 * 20), "received, succeeded"


def over(row: dict[str, Any], base: dict[str, Any]) -> Any:
    return None if row is base else pytest.approx(100 * (row["seconds"] / base["seconds"] - 1), abs=0.1)


@pytest.mark.parametrize(("module", "events"), [("stock_app", "True"), ("lean_app", "False")])
def test_the_other_workers_of_the_jobs_have_the_consumer_and_the_transport_of_celery(
    module: str, events: str
) -> None:
    program = (
        f"from benchmarks.{module} import app; "
        "print(app.connection_for_read().get_transport_cls().__module__, app.conf.worker_consumer,"
        " app.conf.worker_send_task_events)"
    )
    without = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT, env=without
    )
    assert said.stdout.split() == ["kombu.transport.redis", "celery.worker.consumer:Consumer", events]


def test_each_size_of_a_backlog_is_measured_over_the_same_tables(run: Run) -> None:
    small, large = run(backlog)
    assert [(row["executions"], row["executions_done"]) for row in (small, large)] == [(40, 40), (80, 80)]
    assert small["us_each"] == pytest.approx(1e6 / small["executions_per_second"], rel=0.01)
    assert Execution.objects.count() == 80


@pytest.mark.usefixtures("database")
def test_a_prepared_execution_is_up_to_date_and_one_report_changes_its_status() -> None:
    pairs = prepare(3, 4, done=3)
    assert [execution for execution, _ in pairs] == list(
        Execution.objects.order_by("pk").values_list("pk", flat=True)
    )
    ids = [execution for execution, _ in pairs]
    assert refresh(ids).changed == 0
    report_all(Assignment([task for _, task in pairs], budget=9), time.monotonic())
    assert refresh(ids).changed == 3
    again = prepare(2, 1)
    assert (len(again), Task.objects.count()) == (2, 14)
    assert not {execution for execution, _ in again} & set(ids)


def test_a_change_that_is_committed_after_a_later_one_is_seen(bench_servers: Servers) -> None:
    insert = (
        "INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at)"
        " VALUES (%s, 1, 'Running', 'Success', now())"
    )
    with psycopg.connect(bench_servers.database_url) as early, psycopg.connect(bench_servers.database_url) as late:
        early.execute(insert, [1])
        with Watcher(bench_servers.database_url) as watcher:
            late.execute(insert, [2])
            late.commit()
            watcher.poll()
            assert set(watcher.seen) == {2}
            early.commit()
            watcher.poll()
            assert set(watcher.seen) == {1, 2}
            first = dict(watcher.seen)
            watcher.poll()
            assert watcher.seen == first


def test_two_receivers_get_everything_although_a_third_one_hangs(run: Run) -> None:
    nothing, three = run(deliveries, executions=40)
    assert (nothing["subscriptions"], nothing["seconds_listing"]) == (0, None)
    assert (three["subscriptions"], three["delivered"], three["cut"]) == (3, 80, False)
    assert 0 < three["to_the_hanging"] <= 2 * CONNECTIONS


def test_hooks_are_measured_beside_a_bare_view(run: Run) -> None:
    bare, hook = run(hooks, executions=5, passes=1)
    assert [row["view"] for row in (bare, hook)] == ["bare UPDATE", "status hook"]
    for row in (bare, hook):
        assert (row["requests"], row["errors"], row["processes"]) == (15, 0, 2)
    assert (bare["share"], bare["marked"], hook["marked"]) == (1.0, 0, 5)
    assert set(Task.objects.values_list("status", "run_count")) == {("Running", 2)}
