"""Announce the instance number of this worker, from its main process, with REFRESH_STRATEGY=hash.

A worker does not start if it has no number, or if another live worker has the same number. Faults that are seen
later are logged, once until they change.
"""

import logging
import threading
import time
from typing import Any

from celery import signals

from harbor_refresh.executions.errors import NoInstance, QueueUnavailable
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import PATIENCE
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.strategies.hash import announcements
from harbor_refresh.tasks.strategies.hash.instance import Instance, this_instance

log = logging.getLogger("harbor_refresh")

_stop = threading.Event()
_announcer: threading.Thread | None = None


def is_enabled() -> bool:
    return refresh_settings().strategy == "hash" and not refresh_settings().in_process


def refuse_without_a_number(**_: Any) -> None:
    """End the worker before it starts, if it cannot have its number. A killed predecessor is removed after
    NODE_TTL_SECONDS, so a node that announces the number for longer than that is alive."""
    if not is_enabled():
        return
    try:
        instance = this_instance()
        _take_number(instance)
    except NoInstance as exc:
        raise SystemExit(str(exc)) from None
    except QueueUnavailable as exc:  # the worker starts, because it waits for the broker as well
        _log_silence(exc)


def _take_number(instance: Instance) -> None:
    deadline = time.monotonic() + pacing.NODE_TTL_SECONDS + pacing.HEARTBEAT_SECONDS
    while True:
        seen = announcements.announce(instance.number, this_node.name, if_free=True)
        holders = [node for node in seen.get(instance.number, []) if node != this_node.name]
        if not holders:
            return
        if time.monotonic() > deadline:
            raise NoInstance(
                f"CORE_INSTANCE_ID: got {instance.number}, which {', '.join(holders)} has and is alive; "
                f"{this_node.name} needs another, from 0 to {instance.total - 1}, or that one stopped."
            )
        time.sleep(min(pacing.HEARTBEAT_SECONDS, 0.5))


def start(**_: Any) -> None:
    """Start the thread when the pool is up, because its processes must not be forked while the thread runs."""
    global _announcer  # noqa: PLW0603
    if is_enabled():
        _stop.clear()
        _announcer = threading.Thread(
            target=announce_until_stopped, args=(this_instance(),), name="instance", daemon=True
        )
        _announcer.start()


def announce_until_stopped(instance: Instance) -> None:
    silent = False
    faults = FaultLog(instance.total, pacing.NODE_TTL_SECONDS)
    while True:
        try:
            faults.update(announcements.announce(instance.number, this_node.name))
        except QueueUnavailable as exc:
            if not silent:
                _log_silence(exc)
            silent = True
        else:
            silent = False
        if _stop.wait(pacing.HEARTBEAT_SECONDS):
            return


class FaultLog:
    """Log doubled and missing numbers, once until they change. A missing number is logged only after `patience`
    seconds, in which a worker can be restarted."""

    def __init__(self, total: int, patience: float) -> None:
        self._total = total
        self._patience = patience
        self._doubled: announcements.Announced = {}
        self._missing: list[int] = []
        self._complete_at = time.monotonic()

    def update(self, seen: announcements.Announced) -> None:
        doubled = announcements.doubled(seen)
        for number, nodes in doubled.items():
            if self._doubled.get(number) != nodes:
                log.error(
                    "CORE_INSTANCE_ID %d is announced by %s: they do the same work", number, ", ".join(nodes)
                )
        self._doubled = doubled
        missing = announcements.unannounced(seen, self._total)
        if not missing:
            self._complete_at = time.monotonic()
        elif missing == self._missing or time.monotonic() - self._complete_at < self._patience:
            return
        else:
            numbers = ", ".join(map(str, missing))
            log.error("Nobody announces CORE_INSTANCE_ID %s of %d: their executions wait", numbers, self._total)
        self._missing = missing


def stop(**_: Any) -> None:
    """Withdraw the number, so that a successor need not wait until this node counts as dead. Wait for a running
    announcement first, because it would undo the withdrawal."""
    if not is_enabled():
        return
    _stop.set()
    if _announcer is not None:
        _announcer.join(PATIENCE * pacing.REDIS_TIMEOUT_SECONDS + 1)
    try:
        announcements.withdraw(this_instance().number, this_node.name)
    except QueueUnavailable as exc:
        _log_silence(exc)


def _log_silence(reason: Exception) -> None:
    log.warning("%s cannot announce its CORE_INSTANCE_ID: %s", this_node.name, reason)


def connect() -> None:
    signals.celeryd_init.connect(refuse_without_a_number, dispatch_uid="instances.refuse")
    signals.worker_ready.connect(start, dispatch_uid="instances.start")
    signals.worker_shutdown.connect(stop, dispatch_uid="instances.stop")
