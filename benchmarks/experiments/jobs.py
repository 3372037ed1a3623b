"""What it costs to track jobs, and how long the progress of their execution takes to read.

1. Running: tracked jobs that do nothing, and as many plain Celery tasks, in turns by three workers: ours, one with
   Celery's own consumer and transport, and one of those that sends no events of tasks. The overheads are those of
   the medians, over plain tasks on Celery's own worker without events, which is the fastest of Celery's, and over
   plain tasks on the same worker; the other figures are those of the median pass.
2. Starting: calls of `start`, until everything is recorded, and until all messages are published; beside each the
   messages of as many plain tasks.
3. Progress: of that execution when a worker has run all jobs; beside it Celery's answer for a group of as many
   results.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from redis import Redis

from benchmarks.empty_jobs import QUEUE, UNCONSUMED, Publish, publish_plain, start_tracked
from benchmarks.errors import BenchError
from benchmarks.group import Group
from benchmarks.job_passes import JobPasses
from benchmarks.options import with_defaults
from benchmarks.percentiles import percentile
from benchmarks.ready_cluster import LeanWorkers, StockWorkers, ready_cluster
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers
from harbor_refresh.executions.lifecycle.deletion import delete_many_ended
from harbor_refresh.executions.lifecycle.stops import stop_many
from harbor_refresh.tasks.jobs import TrackedExecution

COLUMNS: Sequence[Column] = (
    ("what", "what"),
    ("way", "way"),
    ("worker", "worker"),
    ("jobs", "jobs"),
    ("times", "times"),
    ("seconds", "median s"),
    ("least", "least s"),
    ("most", "most s"),
    ("jobs_per_second", "jobs/s"),
    ("redis_commands_each", "Redis commands a job"),
    ("sql_each", "SQL a job"),
    ("cpu_ms_each", "CPU ms a job"),
    ("over_plain_celery_percent", "over plain Celery, no events %"),
    ("over_same_worker_percent", "over plain, same worker %"),
)
TRACKED, PLAIN, GROUP = "tracked jobs", "plain tasks", "Celery's GroupResult"
OURS, STOCK, LEAN = "ours", "Celery's own", "Celery's own, no events"
WARM_UP = 200
#: Celery answers in more than a second.
GROUP_ROUNDS = 5
#: The kinds of processes whose processor time counts as that of the jobs.
MEASURED = ("workers", "redis", "postgresql")


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("jobs", Namespace(**vars(options) | {"workers": 1}))
    include = ["benchmarks.empty_jobs"]
    with (
        ready_cluster(servers, options, include=include) as ours,
        ready_cluster(servers, options, include=include, kind=StockWorkers) as stock,
        ready_cluster(servers, options, include=include, kind=LeanWorkers) as lean,
    ):
        clusters = {OURS: ours, STOCK: stock, LEAN: lean}
        passes = {worker: JobPasses(servers, options, cluster) for worker, cluster in clusters.items()}
        rows = _running(passes, options, screen)
        execution, started = _starting(servers, options, screen)
        with screen.stage(f"Running these {options.tasks:,} jobs", options.tasks) as show:
            passes[OURS].run(lambda _: execution, options.tasks, show)
    return [*rows, *started, *_progress(servers, options, execution, screen)]


@dataclass(frozen=True)
class Way:
    """What is run, and by which worker."""

    kind: str
    worker: str

    def __str__(self) -> str:
        return f"{self.kind}, worker: {self.worker}"


WAYS = tuple(Way(kind, worker) for worker in (OURS, STOCK, LEAN) for kind in (TRACKED, PLAIN))
PUBLISH: dict[str, Publish] = {TRACKED: start_tracked, PLAIN: publish_plain}


def _running(passes: dict[str, JobPasses], options: Namespace, screen: Screen) -> list[Row]:
    found: dict[Way, list[Row]] = {way: [] for way in WAYS}
    for way in WAYS:
        passes[way.worker].run(PUBLISH[way.kind], min(WARM_UP, options.jobs))
    for number in range(1, options.passes + 1):
        for way in WAYS:
            with screen.stage(f"{way}, pass {number}", options.jobs) as show:
                found[way].append(passes[way.worker].run(PUBLISH[way.kind], options.jobs, show))
    rows = {way: _median_pass(way, options.jobs, measured) for way, measured in found.items()}
    for way, row in rows.items():
        row.extra["over_plain_celery_percent"] = _over(row, rows[Way(PLAIN, LEAN)])
        row.extra["over_same_worker_percent"] = _over(row, rows[Way(PLAIN, way.worker)])
        screen.keep(row)
    return list(rows.values())


def _over(row: Row, base: Row) -> float | None:
    """Return how much longer it took, in percent."""
    return None if row is base else round(((row.seconds or 0.0) / (base.seconds or 1.0) - 1) * 100, 1)


def _median_pass(way: Way, jobs: int, measured: Sequence[Row]) -> Row:
    times = [row.seconds or 0.0 for row in measured]
    counted = next(row for row in measured if row.seconds == percentile(times, 0.5))
    cpu = counted.extra["cpu_seconds"]
    each = {
        "worker": way.worker,
        "redis_commands_each": round((counted.redis_commands or 0) / jobs, 2),
        "sql_each": round((counted.sql_statements or 0) / jobs, 3),
        "cpu_ms_each": round(1000 * sum(cpu.get(kind, 0.0) for kind in MEASURED) / jobs, 3),
        "passes": times,
    }
    extra = counted.extra | _row("running", way.kind, jobs, times).extra | each
    return replace(counted, strategy=str(way), extra=extra)


def _starting(servers: Servers, options: Namespace, screen: Screen) -> tuple[TrackedExecution, list[Row]]:
    """Start and publish in turns, as often as there are passes, and return the last execution."""
    times: dict[str, list[float]] = {"recorded": [], "recorded and published": [], "plain Celery, published": []}
    for number in range(1, options.passes + 1):
        is_last = number == options.passes
        with screen.stage(f"Starting {options.tasks:,} jobs, pass {number}", 1):
            times["plain Celery, published"].append(_timed(lambda: publish_plain(options.tasks, UNCONSUMED)))
            execution, recorded, published = _start(options.tasks, QUEUE if is_last else UNCONSUMED)
            times["recorded"].append(recorded)
            times["recorded and published"].append(published)
        with Redis.from_url(servers.redis_url) as broker:
            broker.delete(UNCONSUMED)
        if not is_last:
            stop_many([execution.pk])
            delete_many_ended([execution.pk])
    rows = [_row("starting", way, options.tasks, found) for way, found in times.items()]
    for row in rows:
        screen.keep(row)
    return execution, rows


def _start(jobs: int, queue: str) -> tuple[TrackedExecution, float, float]:
    """Start inside a transaction, so that the moment of its commit is known. Messages are published after it."""
    recorded: list[float] = []
    began = time.perf_counter()
    with transaction.atomic():
        transaction.on_commit(lambda: recorded.append(time.perf_counter() - began))
        execution = start_tracked(jobs, queue)
    return execution, recorded[0], time.perf_counter() - began


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def asked(ask: Callable[[], object], expected: object, rounds: int) -> list[float]:
    """Return the seconds of each call but the first. A wrong answer is an error, not a measurement."""

    def ask_once() -> None:
        if (answer := ask()) != expected:
            raise BenchError(f"The progress is {expected}, and the answer was {answer}.")

    ask_once()
    return [_timed(ask_once) for _ in range(rounds)]


def _progress(servers: Servers, options: Namespace, execution: TrackedExecution, screen: Screen) -> list[Row]:
    """Read both when all jobs are final and no worker has work."""
    jobs = options.tasks
    with screen.stage(f"Progress of {jobs:,} jobs", 1):
        counted = asked(lambda: execution.progress().counts, {"Success": jobs}, options.rounds)
    with screen.stage(f"{GROUP} of {jobs:,}", 1):
        group = Group(servers, jobs)
        group.carry_out(options.budget)
        celery = asked(group.completed, jobs, GROUP_ROUNDS)
    found = {"execution.progress()": counted, GROUP: celery}
    rows = [_row("progress", way, jobs, times) for way, times in found.items()]
    for row in rows:
        screen.keep(row)
    return rows


def _row(what: str, way: str, jobs: int, times: Sequence[float]) -> Row:
    median = percentile(times, 0.5) or 0.0
    extra = {
        "what": what,
        "way": way,
        "jobs": jobs,
        "times": len(times),
        "least": round(min(times), 5),
        "most": round(max(times), 5),
        "jobs_per_second": None if what == "progress" else round(jobs / median, 1),
    }
    return Row(way, 1, 1, seconds=round(median, 5), extra=extra)
