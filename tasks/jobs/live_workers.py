"""Which workers are alive: each has a row (Node), and no run of a worker without a row goes on.

The main process of a worker beats for the processes below it: in a pool of processes, a job that holds the
interpreter for a minute is no dead job. Two threads share the work:

1. One beats once a second (sql/beat.sql): nothing else may hold up a beat.
2. The other looks five times a second whether a process of its pool has died, and releases what that ran. It asks
   once a second, or every other second if it is idle, what is to do (sql/to_do.sql), and does it: it deletes the
   rows of dead workers, and releases what a worker ran that has no row; sends jobs; and kills what was stopped and
   does not listen. What the terms of executions say is carried out in a third thread, because a stop of a million
   jobs takes minutes.

Processes of a pool die with their worker, by the kernel: Celery sees to that. If a server is down, nothing is
released, and no job begins or ends. A worker that was frozen and comes back has lost its runs.
"""

import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any

from celery import bootsteps
from celery.worker.state import active_requests, total_count
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown, RefreshError
from harbor_refresh.tasks.jobs import limits, sender, terms
from harbor_refresh.tasks.jobs.outcomes import HEADER, run_of
from harbor_refresh.tasks.jobs.running.reaper import release, release_runs_without_worker, running
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.models.job import Job, JobState, Node
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline.own_connections import beside_the_pool

log = logging.getLogger("harbor_refresh")

#: After so long a silent worker is suspected, and after so long again it is dead.
TTL_SECONDS = 5.0
BEAT_SECONDS = 1.0
#: So often it looks whether a process of its pool has died, and whether a limit lets the next job run.
MOMENT = 0.2
#: Its rate is the highest of so many beats.
BEATS_A_RATE = 5
#: With each pass, once a second, a worker sends the jobs whose time has come, or whose limit has room. Every so
#: many passes it looks in full: whether anything else is left to send or to release.
PASSES_A_FULL_LOOK = 5

#: The environment variable that tells processes of a pool the id of their worker, because they may be spawned.
ID = "HARBOR_REFRESH_NODE"


def delete_dead_workers() -> list[str]:
    """Delete the workers that are suspected for the ttl and silent still, and suspect those that are silent for
    the ttl. Returns the names of the dead. Two looks, because after a pause of the database all are silent: then a
    heartbeat (sql/beat.sql), which ends the suspicion, comes before the second. If the clock has gone back, a time
    may lie ahead; from the ttl on, that counts as silence, too."""
    before, ahead = Now() - timedelta(seconds=TTL_SECONDS), Now() + timedelta(seconds=TTL_SECONDS)
    with absence_translated(), transaction.atomic():
        late = Node.objects.select_for_update(skip_locked=True).filter(suspected_at__lt=before)
        dead = dict(late.values_list("pk", "name"))
        Node.objects.filter(pk__in=dead).delete()
        quiet = Node.objects.exclude(heard_at__range=(before, ahead))
        quiet.filter(Q(suspected_at=None) | Q(suspected_at__gt=ahead)).update(suspected_at=Now())
    if names := [*dead.values()]:
        signals.workers_died.send(sender=delete_dead_workers, names=names)
    return names


class ThisWorker:
    """This worker. Processes of its pool have its id."""

    def __init__(self) -> None:
        self.id = int(os.environ.get(ID) or secrets.randbits(62))
        self._ending, self._has_connected = threading.Event(), threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._is_logged = self._has_limits = self._has_limits_to_write = False
        #: Since when it beats without a gap, and when it last did.
        self._since = self._beat_at = 0.0
        #: How many tasks a second this worker has ended of late, and how many in all at the last beat.
        self._rates: deque[float] = deque(maxlen=BEATS_A_RATE)
        self._ended, self._counted_at = 0, 0.0
        #: How many it had ended when a pass found nothing to do; else None.
        self._ended_when_idle: int | None = None
        #: The processes of its pool that were alive at the last look.
        self._living = set[int]()
        self._name = ""
        self._consumer: Any = None

    def start(self, consumer: Any) -> None:
        """Say that this worker is there, before it takes a message and before its pool has processes; go on in
        threads."""
        self.id = secrets.randbits(62)  # two workers may have been forked from one process
        os.environ[ID] = str(self.id)
        self._consumer, self._name = consumer, str(consumer.hostname)
        self._rates.clear()
        self._ended, self._counted_at = _ended(), time.monotonic()
        self._ending.clear()  # a process of a test has several workers, one after the other
        self._has_limits = any(limits.is_limited(one) for one in consumer.app.tasks.values())
        with beside_the_pool():  # the main thread, which is forked, keeps no connection
            self._beat()
            self._has_limits_to_write = self._has_limits and not self._guarded(limits.write_declared)
        sender.publisher.get()  # before a fork, so that none of its locks is held in a child
        self._do_beside("beats", self._beat_on)
        self._do_beside("passes", self._pass_on)

    def _do_beside(self, name: str, work: Callable[[], None]) -> None:
        """Do this work in a thread with this name, unless that thread is still at it, or the worker ends."""
        before = self._threads.get(name)
        if not self._ending.is_set() and not (before and before.is_alive()):
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads[name] = thread

    def connected(self) -> None:
        """Wait for messages from now on: those of the time before may not have reached the broker."""
        self._has_connected.set()

    def stop(self, **_: Any) -> None:
        """Leave, after the pool has ended: what its processes ran, and did not end, is released now."""
        if not self._threads:
            return
        self._ending.set()
        for thread in list(self._threads.values()):
            thread.join(TTL_SECONDS)
        self._threads.clear()
        try:
            with beside_the_pool(), absence_translated():
                Node.objects.filter(pk=self.id).delete()
                release_runs_without_worker()
        except (RefreshError, DatabaseError) as exc:
            log.warning("%s could not say that it leaves: %s", self._name, exc)

    @beside_the_pool()
    def _beat_on(self) -> None:
        while not self._ending.wait(BEAT_SECONDS):
            self._beat()

    @beside_the_pool()
    def _pass_on(self) -> None:
        passes, next_at = 0, time.monotonic() + BEAT_SECONDS
        while not self._ending.wait(MOMENT):
            self._guarded(self._look_at_pool)
            if self._has_limits:
                self._guarded(sender.send_admitted)
            if time.monotonic() >= next_at:
                passes, next_at = passes + 1, time.monotonic() + BEAT_SECONDS
                self._guarded(self._look_after_jobs, passes)
                if self._has_limits_to_write:  # the database was down at the start
                    self._has_limits_to_write = not self._guarded(limits.write_declared)

    def _beat(self) -> None:
        now, ended = time.monotonic(), _ended()
        if ended > self._ended or active_requests:  # it was not idle
            self._rates.append((ended - self._ended) / max(now - self._counted_at, 0.1))
        self._ended, self._counted_at = ended, now
        pool, controller = self._consumer.pool, self._consumer.controller
        try:
            with absence_translated():
                run(
                    "beat",
                    id=self.id,
                    node=self._name,
                    slots=int(getattr(pool, "num_processes", None) or controller.concurrency or 1),
                    busy=len(active_requests),
                    queues=self._queues(),
                    rate=max(self._rates, default=None),
                )
        except (RefreshError, DatabaseError) as exc:
            if not self._is_logged:
                log.warning("%s gives no sign of life: %s", self._name, exc)
            self._is_logged = True
        else:
            now = time.monotonic()
            if now - self._beat_at > TTL_SECONDS:
                self._since = now
            self._beat_at, self._is_logged = now, False

    def _look_after_jobs(self, passes: int) -> None:
        if self._ended_when_idle == _ended() and not active_requests:  # an idle worker leaves out every other pass
            self._ended_when_idle = None
            return
        queues = self._queues()
        if self._has_connected.is_set():
            self._has_connected.clear()  # before the statement, during which it may connect again
            Node.objects.filter(pk=self.id).update(started_at=Now())
        [found] = run("to_do", node=self.id, queues=queues, ttl=TTL_SECONDS)
        self._ended_when_idle = _ended() if found == ([], False, None, None, None) else None
        processes, is_one_silent, has_consequences, may_send, with_jobs = found
        # A run that the table has was begun by a process of this pool. If it does not live after that, it is gone.
        # A pool of threads is one process, this one.
        self._look_at_pool()
        self._release_runs_in(set(processes) - {os.getpid(), *self._living})
        if (is_one_silent and self._delete_dead_workers()) or passes % PASSES_A_FULL_LOOK == 0:
            release_runs_without_worker()
            sender.send_all(with_jobs or ())
        if may_send:
            sender.send_due(queues)
        with suppress(RuntimeError):  # another thread changes the set of requests
            self._kill_stopped()
        if has_consequences:
            self._do_beside("terms", self._carry_out)

    @beside_the_pool()
    def _carry_out(self) -> None:
        self._guarded(terms.carry_out)

    def _guarded(self, work: Callable[..., object], *args: object) -> bool:
        """Do this, and return whether the database was there; the beat logs it if not."""
        try:
            with absence_translated():
                work(*args)
        except (RefreshError, DatabaseError) as exc:
            return not isinstance(exc, DatabaseDown)
        except Exception:
            log.error("%s could not look after its jobs", self._name, exc_info=True)
        return True

    def _delete_dead_workers(self) -> bool:
        """Return whether a worker was dead. If the database was down, this one does not know which others beat: it
        deletes none until it has beaten for a ttl itself."""
        now = time.monotonic()
        if now - self._beat_at > TTL_SECONDS or now - self._since < TTL_SECONDS:
            return False
        return bool(delete_dead_workers())

    def _kill_stopped(self) -> None:
        """Kill the processes of runs that were stopped (`stop(kill_after=…)`) and go on, as Celery terminates a
        task: its message is acknowledged, and the pool starts another process."""
        tasks = {request: run_of(request.request_dict.get(HEADER)) for request in list(active_requests)}
        ids = [found[0] for found in tasks.values() if found]
        rows = Job.objects.filter(pk__in=ids, state=JobState.ENDED, kill_at__lte=Now())
        due = set(rows.values_list("pk", flat=True)) if ids else set()
        for request in [one for one, found in tasks.items() if found and found[0] in due]:
            if self._processes():  # in the thread that reads the results of the pool, and the broker
                self._consumer.call_soon(_kill, request, self._consumer.pool)
            else:
                _say_once_that_none_can_be_killed()

    def _processes(self) -> list[Any]:
        """Return the processes of the pool, if it has any. Celery changes the list."""
        return list(getattr(getattr(self._consumer.pool, "_pool", None), "_pool", ()))

    def _look_at_pool(self) -> None:
        """Release what processes ran that have died since the last look, and have the pool replace them."""
        pool, before = self._processes(), self._living
        self._living = {one.pid for one in pool if one.exitcode is None}
        if len(self._living) < len(pool) and self._consumer.hub:
            # Celery may notice it only seconds later. Without a hub, a thread of the pool notices it at once.
            self._consumer.hub.call_soon(self._consumer.pool._pool.maintain_pool)
        self._release_runs_in(before - self._living)

    def _release_runs_in(self, processes: set[int]) -> None:
        if processes:
            release(running(Q(node=self.id, process__in=processes)))

    def _queues(self) -> list[str]:
        return list(self._consumer.app.amqp.queues.consume_from)


def _ended() -> int:
    """Return how many tasks this worker has ended, as its main process counts them."""
    return sum(list(total_count.values())) - len(active_requests)


@cache
def _say_once_that_none_can_be_killed() -> None:
    log.warning("A stopped run cannot be killed: the pool of this worker has no processes")


def _kill(request: Any, pool: Any) -> None:
    if request in active_requests:  # else its process does another job by now
        log.warning("Killing process %s: the run of %s was stopped and did not end", request.worker_pid, request)
        request.terminate(pool, signal="KILL")


this_worker = ThisWorker()


class WorkerStep(bootsteps.StartStopStep):
    """The step of each worker that has it beat. It is made before the pool has processes, and started whenever the
    worker has connected to the broker."""

    requires = ("celery.worker.consumer:Connection",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        this_worker.start(consumer)

    def start(self, parent: Any) -> None:
        this_worker.connected()
