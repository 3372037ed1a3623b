"""Gentle traffic without an end, so that there is something to see.

A new execution every other second; its tasks take some seconds to half a minute.

Keeps itself bounded, waits while the database is away, and takes up again what an earlier demo left
unfinished. What it made is told from everybody else's by `extra_attrs`.
"""

import heapq
import itertools
import time
from collections.abc import Callable
from random import Random

from django.db import connection

from examples.simulation.plan import VENDORS
from executions.database import absence_translated
from executions.errors import DatabaseAway, NoSuchExecution
from executions.models import Execution, Task
from executions.status import FINAL_CODE, Status
from executions.usecases import NewExecution, NewTask, Report, create, delete, report, stop

KEEP = 500
EVERY_SECONDS = 2.0
AGAIN_SECONDS = 1.0
MARK = {"simulation": "demo"}

Act = Callable[[], None]
Tell = Callable[[str], None]


class Demo:
    """A clock with things to do. `run` never returns; it is interrupted."""

    def __init__(
        self,
        seed: int,
        *,
        keep: int = KEEP,
        tell: Tell = lambda line: None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rng = Random(seed)  # noqa: S311 - repeatable is the point
        self._keep, self._tell, self._now, self._sleep = keep, tell, now, sleep
        self._agenda: list[tuple[float, int, Act]] = []
        self._turn = itertools.count()
        self._later(0, self._take_up)
        self._later(0, self._new_execution)

    def run(self) -> None:
        away = False
        while True:
            due, turn, act = heapq.heappop(self._agenda)
            self._sleep(max(0.0, due - self._now()))
            try:
                with absence_translated():
                    act()
            except DatabaseAway as exc:
                if not away:
                    self._tell(f"{exc}. Waiting for it to come back.")
                away = True
                heapq.heappush(self._agenda, (due, turn, act))
                self._sleep(AGAIN_SECONDS)
            else:
                if away:
                    self._tell("The database is back.")
                away = False

    def _later(self, seconds: float, act: Act) -> None:
        heapq.heappush(self._agenda, (self._now() + seconds, next(self._turn), act))

    def _new_execution(self) -> None:
        vendor, rng = self._rng.choice(VENDORS), self._rng
        size = rng.choice((1, 1, 2, 3, 4, 6, 10))
        execution = create(NewExecution(vendor, rng.randint(1, 40), extra_attrs=MARK, tasks=[NewTask()] * size))
        self._later(EVERY_SECONDS * rng.uniform(0.6, 1.4), self._new_execution)
        for task_id in execution.tasks.values_list("pk", flat=True):
            self._plan(task_id, 0, rng.uniform(0.5, 3))
        if rng.random() < 0.03:
            self._later(rng.uniform(3, 12), lambda: self._stop(execution.pk))
        self._forget_the_oldest()

    def _plan(self, task_id: int, revision: int, begin: float) -> None:
        """Scheduled, Running, an end within 5 to 40 seconds; some failures are run again."""
        rng = self._rng
        fails = rng.random() < 0.08
        end = begin + rng.uniform(2, 6) + rng.triangular(3, 30, 6)
        self._say(begin, Report(task_id, Status.SCHEDULED, revision))
        self._say(begin + rng.uniform(0.5, 2), Report(task_id, Status.RUNNING, revision))
        message = "the registry did not answer" if fails else None
        status = Status.ERROR if fails else Status.SUCCESS
        self._say(end, Report(task_id, status, revision, message))
        if fails and revision < 2 and rng.random() < 0.5:
            self._later(end, lambda: self._plan(task_id, revision + 1, rng.uniform(3, 10)))

    def _say(self, seconds: float, one: Report) -> None:
        def act() -> None:
            report([one])

        self._later(seconds, act)

    def _stop(self, execution_id: int) -> None:
        try:
            stop(execution_id)
        except NoSuchExecution:
            return  # deleted meanwhile, by hand: that is allowed

    def _take_up(self) -> None:
        """Bring to an end what an earlier demo left unfinished."""
        left = Task.objects.filter(execution__extra_attrs=MARK, status_code__lt=FINAL_CODE)
        for task_id, revision in left.values_list("pk", "status_revision"):
            self._say(self._rng.uniform(5, 40), Report(task_id, Status.SUCCESS, revision))

    def _forget_the_oldest(self) -> None:
        ours = Execution.objects.filter(extra_attrs=MARK)
        excess = ours.count() - self._keep
        if excess > 0:
            finished = ours.filter(end_time__isnull=False).order_by("pk")
            delete(finished.values_list("pk", flat=True)[:excess])


def demo(seed: int, tell: Tell, sleep: Callable[[float], None]) -> None:
    """Run until interrupted."""
    try:
        Demo(seed, tell=tell, sleep=sleep).run()
    finally:
        connection.close()
