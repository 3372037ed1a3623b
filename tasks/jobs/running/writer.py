"""The writer: one thread in each process that runs jobs. It writes what becomes of their runs, many at once.

An end is written soon after it has come, together with others; then the next jobs of their queues are sent. A run
that goes on for longer is shown as Running, and its check-ins are written once a second, which also says whether
it still stands.

If the process dies before an end is written, the job runs again, although its work was done. If the database is
down, ends wait here. A row may say that a job runs in this process although it does not, because the database went
down while the run began, or has lost its end: then the run is released.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import OperationalError
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.outcomes import Outcome, Run, take_apart
from harbor_refresh.tasks.jobs.running.reaper import release, running
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.pipeline.own_connections import beside_the_pool
from harbor_refresh.tasks.pipeline.per_process import PerProcess

log = logging.getLogger("harbor_refresh")

#: Seconds between two transactions while ends keep coming; longer after a larger batch, and shorter after one of a
#: few that are awaited. A transaction, and the refresh that follows, cost as much as ten jobs that do nothing.
MOMENT, EACH, LONGEST, FEW = 0.1, 0.005, 1.0, 0.02
#: A run that is over sooner is never shown as Running: only its end is written.
SHOWN_SECONDS = 0.2
#: So often the check-ins of runs are written, and it is asked whether they stand.
LOOK_SECONDS = 1.0
#: The most ends in one transaction.
TOGETHER = 500
PAUSE_SECONDS = 1.0
#: A run that its row places in this process for so long is released if the process does not know it. While nothing
#: runs here, it is asked so often.
UNKNOWN_SECONDS = 10.0
STOP_SECONDS = 5.0


class Writer:
    def __init__(self) -> None:
        #: The handles (handle.py) of the runs of this process.
        self.current: dict[Run, Any] = {}
        self._ends: deque[Outcome] = deque()
        #: Runs whose ends the last try has left.
        self._left: set[Run] = set()
        self._has_come = threading.Event()
        self._ending = self._is_idle = self._is_logged = False
        self._end_by = 0.0
        self._looked_at = time.monotonic()
        #: The last run that has begun here of each queue, until that is noted.
        self._begun: dict[str, Run] = {}
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def begin(self, job: Any) -> None:
        if before := self.current.get(job.run):  # PostgreSQL has lost its begin in a crash
            before.is_lost = True
        self.current[job.run] = job
        self._begun[job.given.queue] = job.run
        if self._is_idle:
            self._has_come.set()

    def forget(self, its: Run) -> None:
        self.current.pop(its, None)

    def end(self, outcome: Outcome, job: Any = None) -> None:
        """Write this end soon, unless a later run has replaced that of this handle."""
        if self.current.get(outcome.run, job) is not job:
            return
        self._ends.append(outcome)  # first, so that the run is never in neither place
        self.forget(outcome.run)
        self._has_come.set()

    def stop(self) -> None:
        """Write the remaining ends, within a few seconds, and stop."""
        self._end_by = time.monotonic() + STOP_SECONDS
        self._ending = True
        self._has_come.set()
        self._thread.join(STOP_SECONDS)

    @beside_the_pool()
    def _work(self) -> None:
        while not self._ending or (self._ends and time.monotonic() < self._end_by):
            self._is_idle = True  # before the look, so that a run that begins now wakes this thread
            self._is_idle = not (self.current or self._ends)
            self._has_come.wait(UNKNOWN_SECONDS if self._is_idle else MOMENT)
            self._has_come.clear()
            try:
                rest = self._write_ends()
                self._look()
                self._is_logged = self._is_logged and bool(self._left)
            except (RefreshError, OperationalError) as exc:
                rest = PAUSE_SECONDS
                self._log(exc)
            except Exception:
                rest = PAUSE_SECONDS
                log.error("Check-ins of jobs cannot be written", exc_info=True)
            self._rest(rest)

    def _log(self, why: object) -> None:
        if not self._is_logged:  # once until it goes well again
            log.warning("Ends of jobs cannot be written, trying again: %s", why)
        self._is_logged = True

    def _rest(self, seconds: float) -> None:
        """Wait while ends keep coming, until they fill a transaction; send, so that no queue runs dry."""
        until, before = time.monotonic() + seconds, -1
        while before < len(self._ends) < TOGETHER and time.monotonic() < until and not self._ending:
            if before > 0 and not self._is_logged:
                sender.send_behind({one.queue for one in self._ends.copy()})
            before = len(self._ends)
            time.sleep(min(MOMENT, seconds))

    def _write_ends(self) -> float:
        """Write what has come, and return for how long to rest. Raises DatabaseDown: then the ends wait."""
        batch = [self._ends.popleft() for _ in range(min(TOGETHER, len(self._ends)))]
        if not batch:
            return 0.0
        try:
            taken = take_apart(batch)
            why = "its end cannot be written: the database refuses it"
            errors = [replace(one, status=Status.ERROR, message=why, kept=None) for one in taken.refused]
            left = [*taken.left, *take_apart(errors).left]
        except RefreshError:
            self._ends.extendleft(reversed(batch))  # what is written changes nothing the second time
            raise
        self._ends.extend(left)
        before, self._left = self._left, {one.run for one in left}
        written = [one for one in batch if one.run not in self._left]
        if before & self._left:  # else the lock may be free a moment later
            self._log(f"{len(left)} are locked, or take too long")
            if not written:
                self._has_come.wait(PAUSE_SECONDS)
        sender.send_behind({one.queue for one in written}, written)
        usual = min(MOMENT + EACH * len(written), LONGEST)
        is_awaited = any(one.is_needed or one.is_limited for one in written)
        return min(FEW * (len(written) - 1), usual) if is_awaited else usual

    def _look(self) -> None:
        """Show runs that go on, write their check-ins, and ask which stand."""
        now, current = time.monotonic(), list(self.current.values())
        fresh = [one for one in current if not one.is_shown and now - one.began > SHOWN_SECONDS]
        left = {one.run for one in take_apart([Outcome(one.run, Status.RUNNING) for one in fresh]).left}
        for one in fresh:
            one.is_shown = one.run not in left
        if now - self._looked_at >= (LOOK_SECONDS if current or self._begun else UNKNOWN_SECONDS):
            self._looked_at = now
            self._ask(current)

    def _ask(self, current: Sequence[Any]) -> None:
        said = [(one, one.heard, one.said) for one in current]
        begun = self._begun.copy()
        its = {"node": this_worker.id, "process": os.getpid()}
        with absence_translated():
            rows = run(
                "look_at_runs",
                **its,
                task_ids=[one.run.task_id for one in current],
                runs=[one.run.number for one in current],
                are_heard=[heard > one.written for one, heard, _ in said],
                check_ins=[text for _, _, text in said],
                begun=[one.task_id for one in begun.values()],  # so that none of their messages counts as lost
            )
        for queue, noted in begun.items():
            if (last := self._begun.pop(queue)) != noted:  # a later run, which is to be noted as well
                self._begun.setdefault(queue, last)
        are_noted = {(task_id, number): is_noted for task_id, number, is_noted in rows}
        for one, heard, _ in said:
            its_number = one.run.task_id, one.run.number
            one.is_lost = one.is_lost or its_number not in are_noted
            if are_noted.get(its_number):
                one.written = heard
        # runs that the rows place here, and that this process neither does nor has ended; one that has just begun
        # may not be known yet
        here = {*self.current.copy(), *(one.run for one in self._ends.copy())}
        if unknown := are_noted.keys() - {(one.task_id, one.number) for one in here}:
            before = Now() - timedelta(seconds=UNKNOWN_SECONDS)
            found = running(Q(pk__in=[pk for pk, _ in unknown], begun_at__lt=before, **its))
            release([one for one in found if (one.pk, one.run) in unknown])


of_this_process = PerProcess(Writer)
