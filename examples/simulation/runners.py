"""The runners: threads that carry out the scripts of a plan through the use cases.

Reports are idempotent. A runner that loses the database waits and sends its batch again, so the plan is carried
out to its end although servers are restarted meanwhile.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby, islice

from django.db import connection

from examples.simulation.plan import WHOLE, Move, Plan
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import stop

BATCH = 10
RETRY_SECONDS = 0.5
PAGE = 500

Progress = Callable[[int], None]


@dataclass
class Tally:
    """The results of the moves so far. `sent` counts reports and stops."""

    sent: int = 0
    applied: int = 0
    unchanged: int = 0
    refused: int = 0
    stops: int = 0


@dataclass(frozen=True)
class Created:
    """The ids of the executions of a plan and of their tasks."""

    executions: list[int]
    tasks: list[list[int]]


def create_executions(plan: Plan, progress: Progress = lambda count: None) -> Created:
    """Create the executions of a plan. All of them are Running."""
    created = Created([], [])
    for start in range(0, plan.mix.executions, PAGE):
        for vendor in plan.vendors[start : start + PAGE]:
            tasks = [NewTask()] * plan.mix.tasks
            execution = create(NewExecution(vendor, tasks=tasks, extra_attrs={"seed": plan.mix.seed}))
            created.executions.append(execution.pk)
            created.tasks.append(list(execution.tasks.order_by("pk").values_list("pk", flat=True)))
        progress(len(created.executions))
    return created


class Runners:
    """Carries out a plan on the executions created for it, at `rate` moves a second (0: no limit).

    A runner gives up when the database is down for longer than `patience` seconds.
    """

    def __init__(self, plan: Plan, created: Created, *, rate: float, patience: float) -> None:
        self._plan, self._created, self._patience = plan, created, patience
        self._rate = rate / max(1, len(plan.scripts))
        self._batch = max(1, min(BATCH, round(self._rate / 10))) if rate else BATCH
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.tally = Tally()

    def run(self, progress: Progress = lambda sent: None) -> Tally:
        """Run until the last move is made. If one runner fails, or on KeyboardInterrupt, all runners stop."""
        with ThreadPoolExecutor(max(1, len(self._plan.scripts)), "runner") as threads:
            futures = [threads.submit(self._carry_out, one) for one in self._plan.scripts]
            try:
                self._watch(futures, progress)
            finally:
                self._over.set()
        for future in futures:
            future.result()
        return self.tally

    def _watch(self, futures: "list[Future[None]]", progress: Progress) -> None:
        waiting = True
        while waiting:
            done, left = wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION)
            progress(self.tally.sent)
            waiting = bool(left) and not any(one.exception() for one in done)

    def _carry_out(self, script: Sequence[Move]) -> None:
        start, sent = time.monotonic(), 0
        try:
            for moves in _batches(script, self._batch):
                due = start + sent / self._rate if self._rate else start
                if self._over.wait(max(0.0, due - time.monotonic())):
                    return
                self._send_until_answered(moves)
                sent += len(moves)
        finally:
            connection.close()

    def _send_until_answered(self, moves: Sequence[Move]) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                with absence_translated():
                    return self._make_moves(moves)
            except DatabaseDown:
                if time.monotonic() > deadline or self._over.wait(RETRY_SECONDS):
                    raise

    def _make_moves(self, moves: Sequence[Move]) -> None:
        if moves[0].task == WHOLE:
            stop(self._created.executions[moves[0].execution])
            with self._lock:
                self.tally.sent += 1
                self.tally.stops += 1
            return
        outcome = report(
            Report(self._created.tasks[move.execution][move.task], move.status, move.revision) for move in moves
        )
        with self._lock:
            self.tally.sent += len(moves)
            self.tally.applied += outcome.applied
            self.tally.unchanged += outcome.unchanged
            self.tally.refused += len(outcome.refused)


def _batches(script: Sequence[Move], size: int) -> Iterator[list[Move]]:
    """Split a script into batches of up to `size` reports. Each stop is a batch of its own; the order is kept."""
    for is_stop, group in groupby(script, key=lambda move: move.task == WHOLE):
        while batch := list(islice(group, 1 if is_stop else size)):
            yield batch
