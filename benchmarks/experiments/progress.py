"""The progress of a parent of many tasks: ours, counted by one statement, and Celery's, asked of its group.

Neither caches anything between two questions, as when a page is opened. Our tables are not vacuumed after the
reports.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Sequence

from benchmarks.errors import BenchError
from benchmarks.group import Group
from benchmarks.meters import RedisMeter
from benchmarks.noop_app import FIRST, REST
from benchmarks.options import with_defaults
from benchmarks.percentiles import percentile
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers
from benchmarks.unfinished_executions import prepare
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.jobs import TrackedExecution

COLUMNS: Sequence[Column] = (
    ("way", "way"),
    ("tasks", "tasks"),
    ("done", "done"),
    ("median_ms", "median ms"),
    ("p99_ms", "p99 ms"),
    ("statements", "SQL statements"),
    ("redis_commands", "Redis commands"),
    ("rounds", "asked"),
)
COUNTED, CELERY = "counted from the tasks", "Celery's GroupResult"
TOGETHER = 500
#: Celery's answer takes more than a second, so a few rounds give the median; its 99th percentile is not measured.
GROUP_ROUNDS = 5


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("progress", options)
    half = options.tasks // 2
    stages = (0, half, options.tasks)
    rows = []
    with screen.stage(f"Ours, {options.tasks:,} tasks", len(stages)) as show:
        pairs = prepare(1, options.tasks)
        execution, tasks = TrackedExecution.objects.get(pk=pairs[0][0]), [task for _, task in pairs]
        for number, done in enumerate(stages):
            _succeed(tasks[stages[max(0, number - 1)] : done])
            expected = {"Pending": options.tasks - done, "Success": done}
            times = time_calls(lambda: execution.progress().counts, _without_zeros(expected), options.rounds)
            rows.append(_row(COUNTED, options, done, times))
            screen.keep(rows[-1])
            show(number + 1)
    with screen.stage(f"Celery's group, {options.tasks:,} tasks", len(stages)) as show:
        group = Group(servers, options.tasks, half)
        meter = RedisMeter(servers.redis_url)
        for number, (done, queue) in enumerate(zip(stages, ("", FIRST, REST), strict=True)):
            if queue and done:
                group.carry_out(queue, done, options.budget)
            times = time_calls(group.completed, done, GROUP_ROUNDS, meter)
            gets = meter.commands_by_kind.get("get", 0) // GROUP_ROUNDS
            rows.append(_row(CELERY, options, done, times, gets))
            screen.keep(rows[-1])
            show(number + 1)
        meter.close()
    return rows


def time_calls(
    ask: Callable[[], object], expected: object, rounds: int, meter: RedisMeter | None = None
) -> list[float]:
    """Return the milliseconds of each call but the first. A wrong answer is an error, not a measurement."""
    ask()
    times = []
    if meter:
        meter.start()
    for _ in range(rounds):
        began = time.perf_counter()
        answer = ask()
        times.append((time.perf_counter() - began) * 1000)
        if answer != expected:
            raise BenchError(f"The progress is {expected}, and the answer was {answer}.")
    if meter:
        meter.stop()
    return times


def _succeed(tasks: Sequence[int]) -> None:
    for start in range(0, len(tasks), TOGETHER):
        report([Report(pk, "Success", 1) for pk in tasks[start : start + TOGETHER]])


def _without_zeros(counts: dict[str, int]) -> dict[str, int]:
    return {status: number for status, number in counts.items() if number}


def _row(way: str, options: Namespace, done: int, times: Sequence[float], gets: int = 0) -> Row:
    median, p99 = percentile(times, 0.5), percentile(times, 0.99)
    extra = {
        "way": way,
        "tasks": options.tasks,
        "done": done / options.tasks,
        "median_ms": None if median is None else round(median, 3),
        "p99_ms": None if p99 is None or way == CELERY else round(p99, 3),
        "statements": 1 if way == COUNTED else 0,
        "rounds": len(times),
    }
    return Row(way, 1, 1, seconds=round(sum(times) / 1000, 3), redis_commands=gets, extra=extra)
