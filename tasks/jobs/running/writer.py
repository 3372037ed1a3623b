"""The writer: one thread in each process that runs jobs. It writes what becomes of their runs, many at once.

An end is written soon after it has come, together with others; then the next jobs of their queues are sent. A run
that goes on for longer is shown as Running, and its check-ins are written once a second, which also says whether
it still stands.

If the process dies before an end is written, the job runs again, although its work was done. If the database is
away, ends wait here; if they are lost with their process, it is the same as above. If it went away while a run
began, or loses an end that was written, a row says that a job runs in this process, and it does not: the writer
looks for such rows, and releases their runs. If it loses a begin, the run begins again, with its number, unless
another one has.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from django.db import OperationalError, connection
from django.db.models import Q

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.jobs.database import run
from harbor_refresh.tasks.jobs.nodes import release, runs, this_node
from harbor_refresh.tasks.jobs.outcomes import Outcome, Run, begin, columns, take_apart
from harbor_refresh.tasks.jobs.running.per_process import PerProcess

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
#: Every so many seconds it looks for rows which say that a job runs in this process, and it does not.
UNKNOWN_SECONDS = 10.0
STOP_SECONDS = 5.0


class CurrentRun:
    """A run of this process, as its handle sees it."""

    def __init__(self, its: Run, queue: str) -> None:
        self.run, self.queue = its, queue
        self.began = time.monotonic()
        self.is_lost = self.is_shown = False
        #: JSON of its last check-in, and how often something was heard of it: all in all, and as it was written.
        self.check_in: str | None = None
        self.heard = self.written = 0

    def hear(self, check_in: str | None = None) -> None:
        self.check_in = check_in or self.check_in
        self.heard += 1  # after the check-in: the thread reads them the other way round


class End(NamedTuple):
    """What becomes of a run that is over in this process. `is_lost`: this process knew that it was given up.
    `is_awaited`: another job may wait for this end, in a chain or for a limit."""

    outcome: Outcome
    queue: str
    is_lost: bool
    is_awaited: bool


class Writer:
    def __init__(self) -> None:
        self.current: dict[Run, CurrentRun] = {}
        self._ends: deque[End] = deque()
        self._has_come = threading.Event()
        self._ending = self._is_idle = self._are_awaited = False
        self._looked_at = self._searched_at = time.monotonic()
        self._end_by = 0.0
        self._is_logged = False
        #: The most ends in the next transaction.
        self._together = TOGETHER
        #: Task and number of each run that is here, from before its begin until its end is written; and whether it
        #: has come to its end.
        self._here: dict[tuple[int, int], bool] = {}
        self._lock = threading.Lock()
        #: Queues of which a run has begun here, since that was last noted.
        self._begun: set[str] = set()
        self._noted_at = 0.0
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def begin(self, its: Run, queue: str) -> CurrentRun:
        self.current[its] = one = CurrentRun(its, queue)
        self._begun.add(queue)
        if self._is_idle:
            self._has_come.set()
        return one

    def forget(self, its: Run) -> None:
        self.current.pop(its, None)

    def end(self, outcome: Outcome, queue: str, *, is_awaited: bool = False) -> None:
        """Write this end soon."""
        one = self.current.pop(outcome.run, None)
        self._here[outcome.run.task_id, outcome.run.number] = True
        self._ends.append(End(outcome, queue, one is None or one.is_lost, is_awaited))
        self._has_come.set()

    @contextmanager
    def has(self, task_id: int, before: int) -> Iterator[bool]:
        """During the block, this process begins or does the run of this task that comes after `before` others.
        False if it is here already: a copy of its message has come."""
        one, is_new = (task_id, before + 1), False
        try:
            with self._lock:
                is_new = one not in self._here
                if is_new:
                    self._here[one] = False
            yield is_new
        finally:
            if is_new and not self._here.get(one):
                self._here.pop(one, None)

    def stop(self) -> None:
        """Write the remaining ends, within a few seconds, and stop."""
        self._end_by = time.monotonic() + STOP_SECONDS
        self._ending = True
        self._has_come.set()
        self._thread.join(STOP_SECONDS)

    def _work(self) -> None:
        while not self._ending or (self._ends and time.monotonic() < self._end_by):
            self._is_idle = True  # before the look, so that a run that begins now wakes this thread
            self._is_idle = not (self.current or self._ends)
            self._has_come.wait(UNKNOWN_SECONDS if self._is_idle else MOMENT)
            self._has_come.clear()
            written = self._write_ends()
            is_done = written is not None and self._look()
            if not self._ending:
                self._rest(self._rest_after(written or 0) if is_done else PAUSE_SECONDS)
        connection.close()

    def _rest_after(self, written: int) -> float:
        """After few ends that other jobs wait for, the next are written sooner; after a single one, at once."""
        if not written:
            return 0.0
        usual = min(MOMENT + EACH * written, LONGEST)
        return min(FEW * (written - 1), usual) if self._are_awaited else usual

    def _rest(self, seconds: float) -> None:
        """Wait while ends keep coming, until they fill a transaction."""
        until, before = time.monotonic() + seconds, -1
        while before < len(self._ends) < TOGETHER and time.monotonic() < until and not self._ending:
            before = len(self._ends)
            time.sleep(min(MOMENT, seconds))

    def _write_ends(self) -> int | None:
        """Write what has come, and return how many. None if the database is away: then they wait. What comes
        meanwhile comes with the next batch."""
        count = 0
        for _ in range(len(self._ends) // TOGETHER + 1):
            batch = [self._ends.popleft() for _ in range(min(self._together, len(self._ends)))]
            if not batch:
                break
            try:
                stood, refused = take_apart([one.outcome for one in batch])
                refused += take_apart(_begun_again(batch, [*stood, *refused]))[1]
                why = "its end cannot be written: the database refuses it"
                take_apart([Outcome(one.run, Status.ERROR, why) for one in refused])
            except (RefreshError, OperationalError) as exc:  # what is written changes nothing the second time
                self._put_back(batch, exc)
                return None
            for one in batch:
                self._here.pop((one.outcome.run.task_id, one.outcome.run.number), None)
            self._together = TOGETHER
            self._are_awaited = any(one.is_awaited for one in batch)
            count += len(batch)
            self._is_logged = False
            sender.send_behind({one.queue for one in batch}, [one.outcome for one in batch])
        return count

    def _put_back(self, batch: Sequence[End], exc: Exception) -> None:
        """Put these ends first. But if a lock was not free, or took too long, half as many come together next
        time, until the one that waits for it is alone: that comes last."""
        if isinstance(exc, OperationalError):
            self._together = max(1, len(batch) // 2)
        if isinstance(exc, OperationalError) and len(batch) == 1:
            self._ends.extend(batch)
        else:
            self._ends.extendleft(reversed(batch))
        self._log_absence(exc)

    def _look(self) -> bool:
        """Show runs that go on, write their check-ins, and ask which stand. False if the database is away."""
        now, current = time.monotonic(), list(self.current.values())
        fresh = [one for one in current if not one.is_shown and now - one.began > SHOWN_SECONDS]
        try:
            take_apart([Outcome(one.run, Status.RUNNING) for one in fresh])
            for one in fresh:
                one.is_shown = True
            if current and now - self._looked_at >= LOOK_SECONDS:
                self._looked_at = now
                self._ask(current)
            if now - self._searched_at > UNKNOWN_SECONDS:
                self._release_unknown()
                self._searched_at = now
            self._note_begun(now)
        except (RefreshError, OperationalError) as exc:
            self._log_absence(exc)
            return False
        except Exception:
            log.error("Check-ins of jobs cannot be written", exc_info=True)
        return True

    def _ask(self, current: Sequence[CurrentRun]) -> None:
        said = [(one, one.heard, one.check_in) for one in current]
        with absence_translated():
            standing = run(
                "look_at_runs",
                **columns([one.run for one in current]),
                are_heard=[heard > one.written for one, heard, _ in said],
                check_ins=[text for _, _, text in said],
            )
        ours = {task_id for (task_id,) in standing}
        for one, heard, _ in said:
            if one.run.task_id not in ours and not one.is_lost and _begins_again(one.run):
                one.is_shown = False
                continue  # what was heard is written the next time
            one.is_lost = one.run.task_id not in ours
            one.written = heard

    def _note_begun(self, now: float) -> None:
        """Note once a second that messages of these queues come, so that none of theirs counts as lost."""
        if self._begun and now - self._noted_at >= LOOK_SECONDS:
            self._noted_at, queues, self._begun = now, self._begun, set()
            with absence_translated():
                run("note_begun", node=this_node.id, queues=sorted(queues))

    def _release_unknown(self) -> None:
        """Release runs which their rows place in this process, and which it neither does nor has ended."""
        with absence_translated():
            found = runs(Q(node=this_node.id, process=os.getpid()))
        release([one for one in found if (one.task_id, one.number) not in self._here])

    def _log_absence(self, exc: Exception) -> None:
        """Log that ends wait, once until none waits any more."""
        if not self._is_logged:
            log.warning("Ends of jobs cannot be written, trying again: %s", exc)
        self._is_logged = True


def _begun_again(ends: Sequence[End], known: Sequence[Outcome]) -> list[Outcome]:
    """Return the ends of those runs beside the known ones that begin again."""
    tasks = {one.run.task_id for one in known}
    left = [one.outcome for one in ends if one.outcome.run.task_id not in tasks and not one.is_lost]
    return [one for one in left if _begins_again(one.run)]


def _begins_again(its: Run) -> bool:
    """Begin this run of this process again, if the server has lost its begin, and its job is as it was before."""
    try:
        found = begin(its.task_id, its.job, its.number - 1, this_node.id, os.getpid(), revision=its.revision)
    except (RefreshError, OperationalError):
        raise
    except Exception:
        log.error("The run of task %d cannot begin again", its.task_id, exc_info=True)
        return False
    return found is not None


of_this_process = PerProcess(Writer)
