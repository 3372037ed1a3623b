"""The sweep of old executions, with reports beside it: how long these take and wait, and the memory of the sweep.

The first row is of the reports alone. In the second the sweep is killed when half of the executions are deleted.
In the third it is started again and finishes; once more if reports had locked some executions.
"""

import logging
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from benchmarks import old_executions
from benchmarks.errors import BenchError
from benchmarks.percentiles import summary
from benchmarks.report_traffic import Traffic
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import ROOT, Servers
from benchmarks.unfinished_executions import prepare
from harbor_refresh.executions.retention.lease import LEASE

COLUMNS: Sequence[Column] = (
    ("what", "what"),
    ("deleted", "deleted"),
    ("seconds", "s"),
    ("executions_per_second", "executions/s"),
    ("memory_begin_mb", "MB at first"),
    ("memory_most_mb", "MB at most"),
    ("running_p50_ms", "report p50 ms"),
    ("running_p99_ms", "p99"),
    ("running_max_ms", "max"),
    ("late_p99_ms", "late report p99 ms"),
    ("late_max_ms", "max"),
    ("longest_wait_ms", "longest lock wait ms"),
    ("reports", "reports"),
    ("errors", "errors"),
)
ALONE_SECONDS = 10.0
#: Single reports a second of each of the two kinds.
RATE = 50.0
POLL_SECONDS = 0.2
#: A report that holds a task keeps its execution from one sweep, and hardly from another.
SWEEPS = 5


@dataclass
class Memory:
    begin: int = 0
    most: int = 0

    def note(self, process: psutil.Process) -> None:
        resident = process.memory_info().rss
        self.begin = self.begin or resident
        self.most = max(self.most, resident)


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    size = options.executions
    screen.say(f"Filling the tables: {size:,} executions of {options.tasks_per_execution}")
    old_executions.fill(size, options.tasks_per_execution)
    running = [task for _, task in prepare(100, 20)]
    rows = []

    def measure(what: str, work: Callable[[], Memory]) -> None:
        before = old_executions.left()
        with screen.stage(what, 1) as show, Traffic(running, old_executions.next_to_go, RATE) as traffic:
            began = time.monotonic()
            memory = work()
            seconds = time.monotonic() - began
            show(1)
        row = Row("sweep", 1, size, seconds=round(seconds, 2), extra={"what": what} | _figures(memory, traffic))
        row.extra["deleted"] = before - old_executions.left()
        row.executions_per_second = round(row.extra["deleted"] / seconds, 1) or None
        rows.append(row)
        screen.keep(row)

    with _without_warnings():
        measure("no sweep", lambda: _alone(min(ALONE_SECONDS, options.budget)))
        half = old_executions.left() // 2
        measure("killed half-way", lambda: _sweep(servers, options.budget, kill_at=half))
        measure("again", lambda: _finish(servers, options.budget, min(size, old_executions.VENDOR_IDS)))
    return rows


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Each late report of a deleted task would log one."""
    log = logging.getLogger("harbor_refresh")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _alone(seconds: float) -> Memory:
    time.sleep(seconds)
    return Memory()


def _finish(servers: Servers, budget: float, kept: int) -> Memory:
    memory = Memory()
    for _ in range(SWEEPS):
        of_one = _sweep(servers, budget)
        memory = Memory(memory.begin or of_one.begin, max(memory.most, of_one.most))
        if old_executions.left() == kept:
            return memory
    raise BenchError(f"{old_executions.left():,} executions are left, and {kept:,} are to be kept.")


def _sweep(servers: Servers, budget: float, kill_at: int | None = None) -> Memory:
    """Run `manage.py harbor sweep`; kill it when so few executions are left. While the lease of a killed one is in
    force, a sweep ends with 1, and is started again."""
    memory = Memory()
    deadline = time.monotonic() + budget + LEASE.total_seconds()
    while True:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "harbor", "sweep", "--json"],
            cwd=ROOT,
            env=servers.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        memory = Memory()
        begins_at = old_executions.left()
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
            left = old_executions.left()
            if left < begins_at and process.poll() is None:
                memory.note(psutil.Process(process.pid))
            if (kill_at is not None and left <= kill_at) or time.monotonic() > deadline:
                process.kill()
        _, said = process.communicate()
        if time.monotonic() > deadline:
            raise BenchError("The sweep did not end in its time. Give it more with --budget.")
        if process.returncode == 0 or kill_at is not None:
            return memory
        if "another sweep is running" not in said:
            raise BenchError(f"The sweep ended with {process.returncode}: {said}")


def _figures(memory: Memory, traffic: Traffic) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "memory_begin_mb": round(memory.begin / 1e6, 1) or None,
        "memory_most_mb": round(memory.most / 1e6, 1) or None,
        "longest_wait_ms": round(traffic.longest_wait * 1000, 1),
        "reports": sum(map(len, traffic.seconds.values())),
        "errors": len(traffic.errors),
        "first_error": next(iter(traffic.errors), ""),
    }
    for name, times in traffic.seconds.items():
        of_one = summary([one * 1000 for one in times], 1)
        figures |= {f"{name}_{key}_ms": value for key, value in of_one.items()}
    return figures
