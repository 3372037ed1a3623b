"""With REFRESH_STRATEGY=hash: which instance this worker is, announced by its main process.

A worker that cannot know its number, or whose number another live worker has, does not start. What is seen
to be wrong later is told in the log, once until it changes.
"""

import logging
import threading
import time
from typing import Any

from celery import signals

from executions.errors import NoInstance, QueueUnavailable
from tasks.conf import refresh_settings
from tasks.queue.node import this_node
from tasks.strategies.hash import announcements
from tasks.strategies.hash.instance import Instance, this_instance

log = logging.getLogger("harbor_refresh")

_stop = threading.Event()
_announcer: threading.Thread | None = None


def is_wanted() -> bool:
    return refresh_settings().strategy == "hash" and not refresh_settings().in_process


def refuse_without_a_number(**_: Any) -> None:
    """Before the worker starts anything. A predecessor that was killed is forgotten after
    REFRESH_NODE_TTL_SECONDS, so one that beats for longer is alive."""
    if not is_wanted():
        return
    try:
        instance = this_instance()
        _take(instance)
    except NoInstance as exc:
        raise SystemExit(str(exc)) from None
    except QueueUnavailable as exc:  # no reason not to start: the broker is waited for, too
        _tell_silent(exc)


def _take(instance: Instance) -> None:
    conf = refresh_settings()
    deadline = time.monotonic() + conf.node_ttl + conf.heartbeat
    while True:
        seen = announcements.announce(instance.number, this_node.name, yields=True)
        holders = [node for node in seen.get(instance.number, []) if node != this_node.name]
        if not holders:
            return
        if time.monotonic() > deadline:
            raise NoInstance(
                f"CORE_INSTANCE_ID: got {instance.number}, which {', '.join(holders)} has and is alive; "
                f"{this_node.name} needs another, from 0 to {instance.total - 1}, or that one stopped."
            )
        time.sleep(min(conf.heartbeat, 0.5))


def start(**_: Any) -> None:
    """Once the pool is up: its processes are not born into the middle of a thread."""
    global _announcer  # noqa: PLW0603
    if is_wanted():
        _stop.clear()
        _announcer = threading.Thread(
            target=announce_until_stopped, args=(this_instance(),), name="instance", daemon=True
        )
        _announcer.start()


def announce_until_stopped(instance: Instance) -> None:
    conf = refresh_settings()
    silent = False
    told = Told(instance.total, conf.node_ttl)
    while True:
        try:
            told.tell(announcements.announce(instance.number, this_node.name))
        except QueueUnavailable as exc:
            if not silent:
                _tell_silent(exc)
            silent = True
        else:
            silent = False
        if _stop.wait(conf.heartbeat):
            return


class Told:
    """What is wrong with the instances, told once until it changes. A number that is missing is given the
    time in which a worker is restarted."""

    def __init__(self, total: int, patience: float) -> None:
        self._total = total
        self._patience = patience
        self._doubled: announcements.Announced = {}
        self._missing: list[int] = []
        self._whole_at = time.monotonic()

    def tell(self, seen: announcements.Announced) -> None:
        doubled = announcements.doubled(seen)
        for number, nodes in doubled.items():
            if self._doubled.get(number) != nodes:
                log.error(
                    "CORE_INSTANCE_ID %d is announced by %s: they do the same work", number, ", ".join(nodes)
                )
        self._doubled = doubled
        missing = announcements.unannounced(seen, self._total)
        if not missing:
            self._whole_at = time.monotonic()
        elif missing == self._missing or time.monotonic() - self._whole_at < self._patience:
            return
        else:
            numbers = ", ".join(map(str, missing))
            log.error("Nobody announces CORE_INSTANCE_ID %s of %d: their executions wait", numbers, self._total)
        self._missing = missing


def stop(**_: Any) -> None:
    """A successor need not wait for our silence. A sign of life that is under way comes first: it would undo
    the withdrawal."""
    if not is_wanted():
        return
    _stop.set()
    if _announcer is not None:
        _announcer.join(refresh_settings().redis_timeout)
    try:
        announcements.withdraw(this_instance().number, this_node.name)
    except QueueUnavailable as exc:
        _tell_silent(exc)


def _tell_silent(reason: Exception) -> None:
    log.warning("%s cannot announce its CORE_INSTANCE_ID: %s", this_node.name, reason)


def connect() -> None:
    signals.celeryd_init.connect(refuse_without_a_number, dispatch_uid="instances.refuse")
    signals.worker_ready.connect(start, dispatch_uid="instances.start")
    signals.worker_shutdown.connect(stop, dispatch_uid="instances.stop")
