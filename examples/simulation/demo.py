"""Slow traffic without an end, so that `make up` has something to show.

The demo creates an execution every other second; its tasks take from some seconds to half a minute. It keeps a
bounded number of executions, waits while the database is down, and finishes what an earlier demo left unfinished.
LABEL in `extra_attrs` tells its executions from others.
"""

import heapq
import itertools
import time
from collections.abc import Callable
from random import Random

from django.db import connection

from examples.simulation.plan import VENDORS
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown, NoSuchExecution
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.deletion import delete_many_ended
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import FINAL_CODE, Status

KEEP = 500
EVERY_SECONDS = 2.0
RETRY_SECONDS = 1.0
LABEL = {"simulation": "demo"}

Act = Callable[[], None]
Tell = Callable[[str], None]


class Demo:
    """A queue of acts ordered by time. `run` never returns; it ends by an exception."""

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
        self._acts: list[tuple[float, int, Act]] = []
        self._number = itertools.count()
        self._schedule(0, self._finish_leftovers)
        self._schedule(0, self._new_execution)

    def run(self) -> None:
        down = False
        while True:
            due, number, act = heapq.heappop(self._acts)
            self._sleep(max(0.0, due - self._now()))
            try:
                with absence_translated():
                    act()
            except DatabaseDown as exc:
                if not down:
                    self._tell(f"{exc}. Waiting for it to come back.")
                down = True
                heapq.heappush(self._acts, (due, number, act))
                self._sleep(RETRY_SECONDS)
            else:
                if down:
                    self._tell("The database is back.")
                down = False

    def _schedule(self, seconds: float, act: Act) -> None:
        heapq.heappush(self._acts, (self._now() + seconds, next(self._number), act))

    def _new_execution(self) -> None:
        vendor, rng = self._rng.choice(VENDORS), self._rng
        size = rng.choice((1, 1, 2, 3, 4, 6, 10))
        execution = create(NewExecution(vendor, rng.randint(1, 40), extra_attrs=LABEL, tasks=[NewTask()] * size))
        self._schedule(EVERY_SECONDS * rng.uniform(0.6, 1.4), self._new_execution)
        for task_id in execution.tasks.values_list("pk", flat=True):
            self._schedule_run(task_id, 0, rng.uniform(0.5, 3))
        if rng.random() < 0.03:
            self._schedule(rng.uniform(3, 12), lambda: self._stop(execution.pk))
        self._delete_the_oldest()

    def _schedule_run(self, task_id: int, revision: int, begin: float) -> None:
        """Schedule Scheduled, Running and an end after 5 to 40 seconds; some failed tasks run again."""
        rng = self._rng
        fails = rng.random() < 0.08
        end = begin + rng.uniform(2, 6) + rng.triangular(3, 30, 6)
        self._report_later(begin, Report(task_id, Status.SCHEDULED, revision))
        self._report_later(begin + rng.uniform(0.5, 2), Report(task_id, Status.RUNNING, revision))
        message = "the registry did not answer" if fails else None
        status = Status.ERROR if fails else Status.SUCCESS
        self._report_later(end, Report(task_id, status, revision, message))
        if fails and revision < 2 and rng.random() < 0.5:
            self._schedule(end, lambda: self._schedule_run(task_id, revision + 1, rng.uniform(3, 10)))

    def _report_later(self, seconds: float, one: Report) -> None:
        def act() -> None:
            report([one])

        self._schedule(seconds, act)

    def _stop(self, execution_id: int) -> None:
        try:
            stop(execution_id)
        except NoSuchExecution:
            return  # it was deleted by hand, which is allowed

    def _finish_leftovers(self) -> None:
        """Report the tasks that an earlier demo left unfinished as succeeded."""
        left = Task.objects.filter(execution__extra_attrs=LABEL, status_code__lt=FINAL_CODE)
        for task_id, revision in left.values_list("pk", "status_revision"):
            self._report_later(self._rng.uniform(5, 40), Report(task_id, Status.SUCCESS, revision))

    def _delete_the_oldest(self) -> None:
        labelled = Execution.objects.filter(extra_attrs=LABEL)
        excess = labelled.count() - self._keep
        if excess > 0:
            finished = labelled.filter(end_time__isnull=False).order_by("pk")
            delete_many_ended(finished.values_list("pk", flat=True)[:excess])


def demo(seed: int, tell: Tell, sleep: Callable[[float], None]) -> None:
    """Run the demo until it is interrupted."""
    try:
        Demo(seed, tell=tell, sleep=sleep).run()
    finally:
        connection.close()
