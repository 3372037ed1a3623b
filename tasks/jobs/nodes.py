"""Nodes: which workers are alive, and the one route by which runs of the dead come back.

The main process of a worker beats for the processes below it: in a pool of processes, a job that holds the
interpreter for a minute is no dead job. Two threads share the work:

1. One beats once a second, and at once if jobs end faster than it has said (sql/beat.sql).
2. The other releases what processes of its pool ran that are gone; deletes the rows of other nodes that are
   dead, after two looks that are a ttl apart (sql/delete_dead_nodes.sql); releases what a node ran that has no
   row; and sends jobs. The pool wakes it when a process dies. A node that has been silent itself deletes no row,
   until it has beaten for a ttl.

Processes of a pool die with their worker, by the kernel: Celery sees to that. If a server is away, nothing is
released, and no job begins or ends. A node that was frozen and comes back has lost its runs.
"""

import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from celery import bootsteps
from celery.worker.state import active_requests, total_count
from django.db import DatabaseError, connection
from django.db.models import Exists, OuterRef, Q

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, RefreshError
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import consequences, kills, limits, sender
from harbor_refresh.tasks.jobs.database import run
from harbor_refresh.tasks.jobs.outcomes import Outcome, Run, take_apart
from harbor_refresh.tasks.models.job import Job, Node, State
from harbor_refresh.tasks.news import signals

log = logging.getLogger("harbor_refresh")

#: After so long a silent node is suspected, and after so long again it is dead.
TTL_SECONDS = 5.0
BEAT_SECONDS = 1.0
#: So often it looks how many tasks have ended, and whether a limit lets the next job run.
LOOK_SECONDS, LIMIT_SECONDS = 0.1, 0.2
#: Its rate is the highest of so many beats.
BEATS_A_RATE = 5
#: With each beat a node sends the jobs whose time has come. Every so many beats, it looks whether anything else is
#: left to send or to release.
BEATS_A_PASS = 5
#: The node of runs in eager mode, which no other process watches.
EAGER = 0
#: The most runs that are released in one transaction.
PAGE = 500


#: The environment variable that tells processes of a pool the id of their node, because they may be spawned.
ID = "HARBOR_REFRESH_NODE"


class Rate:
    """How many tasks this worker ends in a second, as its main process counts them: the most of the last beats in
    which it was not idle. So an idle worker is as fast as it was."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=BEATS_A_RATE)
        self._ended, self._at = self._count(), time.monotonic()

    def has_risen(self, slots: int) -> bool:
        """Whether its slots have ended two tasks each since the last beat, and at a rate that is not known yet."""
        ended = self._count() - self._ended
        return ended >= 2 * slots and ended > 1.2 * (self.highest() or 0) * (time.monotonic() - self._at)

    def measure(self) -> None:
        now, ended = time.monotonic(), self._count()
        if ended > self._ended or active_requests:
            self._rates.append((ended - self._ended) / max(now - self._at, LOOK_SECONDS))
        self._ended, self._at = ended, now

    def highest(self) -> float | None:
        return max(self._rates, default=None)

    @staticmethod
    def _count() -> int:
        return sum(list(total_count.values())) - len(active_requests)


class ThisNode:
    """The node of this worker. Processes of its pool have its id."""

    def __init__(self) -> None:
        self.id = int(os.environ.get(ID) or secrets.randbits(62))
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self._is_logged = self._has_risen = self._has_limits = False
        self._rate = Rate()
        #: Since when it beats without a gap, and when it last did.
        self._since = self._beat_at = self._tried_at = 0.0
        self._name = ""
        self._consumer: Any = None
        self._killer = kills.Killer()

    def start(self, consumer: Any) -> None:
        """Say that this node is there, before it takes a message and before its pool has processes; go on in
        threads."""
        self.id = secrets.randbits(62)  # two workers may have been forked from one process
        os.environ[ID] = str(self.id)
        self._consumer, self._name = consumer, str(consumer.hostname)
        self._rate = Rate()
        self._ending.clear()  # a process of a test has several workers, one after the other
        self._beat()
        self._has_limits = any(limits.is_limited(one) for one in consumer.app.tasks.values())
        if self._has_limits:
            self._guarded(limits.write_declared)
        sender.publisher.get()  # before a fork, so that none of its locks is held in a child
        connection.close()  # of the main thread, which is forked
        loops = {"node": self._beat_on, "node's passes": self._pass_on}
        self._threads = [threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops.items()]
        for one in self._threads:
            one.start()

    def is_known(self) -> bool:
        """Return whether this node has a row. Raises DatabaseAway."""
        with absence_translated():
            return Node.objects.filter(pk=self.id).exists()

    def wake(self) -> None:
        """Look at once: a process of the pool has died."""
        self._wake.set()

    def stop(self, **_: Any) -> None:
        """Leave, after the pool has ended: what its processes ran, and did not end, is released now."""
        if not self._threads:
            return
        self._ending.set()
        self._wake.set()
        for one in self._threads:
            one.join(TTL_SECONDS)
        self._threads = []
        self._leave()

    def _beat_on(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            if self._rate.has_risen(self._slots()):  # the broker holds too little for it
                self._beat()
                self._has_risen = True
                self._wake.set()
            elif time.monotonic() - self._tried_at >= BEAT_SECONDS:
                self._beat()
        connection.close()

    def _pass_on(self) -> None:
        passes, next_at = 0, time.monotonic() + BEAT_SECONDS
        while not self._ending.is_set():
            is_woken = self._wake.wait(LIMIT_SECONDS if self._has_limits else BEAT_SECONDS)
            self._wake.clear()
            if is_woken or time.monotonic() >= next_at:
                passes, next_at = passes + 1, time.monotonic() + BEAT_SECONDS
                self._pass(passes)
            else:
                self._guarded(self._send_admitted)
        connection.close()

    def _beat(self) -> None:
        self._tried_at = time.monotonic()
        self._rate.measure()
        try:
            with absence_translated():
                run("beat", id=self.id, node=self._name, **self._offers())
        except (RefreshError, DatabaseError) as exc:
            if not self._is_logged:
                log.warning("%s gives no sign of life: %s", self._name, exc)
            self._is_logged = True
        else:
            now = time.monotonic()
            if now - self._beat_at > TTL_SECONDS:
                self._since = now
            self._beat_at, self._is_logged = now, False

    def _pass(self, passes: int) -> None:
        self._guarded(partial(self._look_after_jobs, passes))

    def _look_after_jobs(self, passes: int) -> None:
        publish, queues = sender.publisher.get().put, self._queues()
        if self._has_risen:
            self._has_risen = False
            sender.send(queues, publish)
        with absence_translated():
            self._release_dead_processes()
        dead = self._delete_dead_nodes()
        if dead or passes % BEATS_A_PASS == 0:
            release_runs_without_node()
            sender.send_all(publish, queues)
        else:
            sender.send_due(publish, queues)
        self._killer.look(self._consumer)
        consequences.have_carried_out()

    def _send_admitted(self) -> None:
        sender.send_admitted(sender.publisher.get().put, self._queues())

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (RefreshError, DatabaseError):
            pass  # the beat says that the database is away
        except Exception:
            log.error("%s could not look after its jobs", self._name, exc_info=True)

    def _delete_dead_nodes(self) -> list[str]:
        """Return the names of the dead nodes, whose rows it deletes. If the database was away, this node does not
        know which nodes beat, and deletes none."""
        now = time.monotonic()
        if now - self._beat_at > TTL_SECONDS or now - self._since < TTL_SECONDS:
            return []
        with absence_translated():
            dead = [name for (name,) in run("delete_dead_nodes", ttl=TTL_SECONDS)]
        if dead:
            signals.nodes_died.send(sender=type(self), names=dead)
        return dead

    def _offers(self) -> dict[str, Any]:
        """What it takes: how many tasks at a time, how many it runs now, from which queues, and how fast."""
        busy = len(active_requests)
        return {"slots": self._slots(), "busy": busy, "queues": self._queues(), "rate": self._rate.highest()}

    def _slots(self) -> int:
        pool, controller = self._consumer.pool, self._consumer.controller
        return int(getattr(pool, "num_processes", None) or controller.concurrency or 1)

    def _queues(self) -> list[str]:
        return list(self._consumer.app.amqp.queues.consume_from)

    def _release_dead_processes(self) -> None:
        """A run that the table has was begun by a process of this pool. If it is not in the pool after that, it is
        gone. A pool of threads is one process, this one."""
        running = runs(Q(node=self.id))
        processes = list(getattr(getattr(self._consumer.pool, "_pool", None), "_pool", ()))  # Celery changes it
        alive = {os.getpid(), *(one.pid for one in processes)}
        release([one for one in running if one.process not in alive])

    def _leave(self) -> None:
        try:
            with absence_translated():
                Node.objects.filter(pk=self.id).delete()
            release_runs_without_node()
        except (DatabaseAway, DatabaseError) as exc:
            log.warning("%s could not say that it leaves: %s", self._name, exc)
        finally:
            connection.close()


this_node = ThisNode()


class NodeStep(bootsteps.Step):
    """The step of each worker that has it beat. It is made before the pool has processes."""

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        this_node.start(consumer)


def runs(which: Any, most: int | None = None) -> list[Run]:
    """Return the runs to which this applies, as their rows say."""
    rows = Job.objects.filter(which, state=State.RUNNING).order_by("pk")
    names = ("pk", "run", "node", "process")
    return [Run(pk, "", number, 0, *where) for pk, number, *where in rows.values_list(*names)[:most]]


def release_runs_without_node() -> int:
    """Release what dead nodes ran, or nodes that have left. Any number of processes may do so at once. A run whose
    task is locked, or that the database refuses, holds up no other: the next pass tries it again."""
    count = after = 0
    without_node = ~Q(node=EAGER) & ~Exists(Node.objects.filter(pk=OuterRef("node")))
    while True:
        with absence_translated():
            found = runs(Q(pk__gt=after) & without_node, PAGE)
        count += release(found)
        if len(found) < PAGE:
            return count
        after = found[-1].task_id


def release(lost: Sequence[Run]) -> int:
    """Release these runs, whose processes are dead: each job waits for another run, or has failed if it has begun
    as often as it may. Returns how many."""
    if not lost:
        return 0
    rows = Job.objects.only("queue", "runs_before", "max_attempts")
    jobs = rows.in_bulk([one.task_id for one in lost])
    outcomes = [_of_dead(one, jobs[one.task_id]) for one in lost if one.task_id in jobs]
    taken, _ = take_apart(outcomes, waits=False)
    signals.runs_released.send(sender=release, count=len(taken))
    sender.send_behind({jobs[one.run.task_id].queue for one in taken if one.waits}, taken)
    return len(taken)


def _of_dead(its: Run, job: Job) -> Outcome:
    if its.number < job.may_begin:
        return Outcome(its, Status.PENDING, "its process died")
    return Outcome(its, Status.ERROR, exhausted(job.max_attempts))


def exhausted(max_attempts: int) -> str:
    often = "once" if max_attempts == 1 else f"{max_attempts} times"
    return f"it has begun {often}, which is as often as it may: see max_attempts"
