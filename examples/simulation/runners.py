"""The crowd: one thread a runner, each carrying out its script through the use cases.

A report may be sent twice without harm, so a runner whose database goes away waits and sends its
batch again: the plan is carried out to its end whatever is restarted meanwhile.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby, islice

from django.db import connection

from examples.simulation.plan import WHOLE, Move, Plan
from executions.database import absence_translated
from executions.errors import DatabaseAway
from executions.usecases import NewExecution, NewTask, Report, create_many, report, stop

BATCH = 10
AGAIN_SECONDS = 0.5
TOGETHER = 500

Progress = Callable[[int], None]


@dataclass
class Tally:
    """What became of the moves; `sent` counts reports and stops."""

    sent: int = 0
    applied: int = 0
    unchanged: int = 0
    refused: int = 0
    stops: int = 0


@dataclass(frozen=True)
class Made:
    """The ids that the executions and tasks of a plan got."""

    executions: list[int]
    tasks: list[list[int]]


def make(plan: Plan, progress: Progress = lambda made: None) -> Made:
    """Create the executions of a plan, all of them still Running."""
    made = Made([], [])
    for start in range(0, plan.mix.executions, TOGETHER):
        vendors = plan.vendors[start : start + TOGETHER]
        news = [
            NewExecution(vendor, tasks=[NewTask()] * plan.mix.tasks, extra_attrs={"seed": plan.mix.seed})
            for vendor in vendors
        ]
        for execution in create_many(news):
            made.executions.append(execution.pk)
            made.tasks.append(list(execution.tasks.order_by("pk").values_list("pk", flat=True)))
        progress(len(made.executions))
    return made


class Crowd:
    """Carries out a plan over executions made for it, at `rate` moves a second (0: no limit).

    `patience` is how many seconds a runner waits for a database that is away before it gives up.
    """

    def __init__(self, plan: Plan, made: Made, *, rate: float, patience: float) -> None:
        self._plan, self._made, self._patience = plan, made, patience
        self._rate = rate / max(1, len(plan.scripts))
        self._batch = max(1, min(BATCH, round(self._rate / 10))) if rate else BATCH
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.tally = Tally()

    def run(self, progress: Progress = lambda sent: None) -> Tally:
        """Until the last move is made. If one runner fails, or we are interrupted, all stop."""
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
                self._insist(moves)
                sent += len(moves)
        finally:
            connection.close()

    def _insist(self, moves: Sequence[Move]) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                with absence_translated():
                    return self._make_moves(moves)
            except DatabaseAway:
                if time.monotonic() > deadline or self._over.wait(AGAIN_SECONDS):
                    raise

    def _make_moves(self, moves: Sequence[Move]) -> None:
        if moves[0].task == WHOLE:
            stop(self._made.executions[moves[0].execution])
            with self._lock:
                self.tally.sent += 1
                self.tally.stops += 1
            return
        outcome = report(
            Report(self._made.tasks[move.execution][move.task], move.status, move.revision) for move in moves
        )
        with self._lock:
            self.tally.sent += len(moves)
            self.tally.applied += outcome.applied
            self.tally.unchanged += outcome.unchanged
            self.tally.refused += len(outcome.refused)


def _batches(script: Sequence[Move], size: int) -> Iterator[list[Move]]:
    """Reports together, up to `size`; each stop alone, and in its place."""
    for is_stop, group in groupby(script, key=lambda move: move.task == WHOLE):
        while batch := list(islice(group, 1 if is_stop else size)):
            yield batch
