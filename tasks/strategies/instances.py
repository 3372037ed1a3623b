"""The instances of the `hash` design: which one this worker is, and which ones are announced.

An announcement is `ID:NODE` in a zset, scored by the last heartbeat. A node here is a whole worker, named by its
main process. A node that is silent for NODE_TTL_SECONDS is removed by the next call of any node.

A worker does not start if it has no number, or if another live worker has the same number. Faults that are seen
later are logged, once until they change.
"""

import logging
import re
import socket
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

from celery import signals

from harbor_refresh.executions.errors import NoInstance, QueueUnavailable
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import PATIENCE, patient, redis_errors_translated
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.queue.scripts import Scripts, Verbs

log = logging.getLogger("harbor_refresh")

#: The nodes that announce a number. If there are two, both do the same work.
Announced = dict[int, list[str]]

_stop = threading.Event()
_announcer: threading.Thread | None = None


@dataclass(frozen=True)
class Instance:
    number: int
    total: int


def this_instance() -> Instance:
    """Read the number from the settings, or without CORE_INSTANCE_ID from the ordinal of a StatefulSet's host
    name (`harbor-core-3`).

    Raises NoInstance, in one line, if there is no number from 0 to the total - 1.
    """
    conf = refresh_settings()
    host = socket.gethostname()
    total = conf.instance_total
    if total is None:
        raise NoInstance(
            "CORE_INSTANCE_TOTAL: got nothing, takes how many instances there are. REFRESH_STRATEGY=hash needs it."
        )
    ordinal = re.search(r"-([0-9]{1,9})$", host)
    number = conf.instance_id if conf.instance_id is not None else ordinal and int(ordinal[1])
    takes = f"takes a whole number from 0 to {total - 1}, CORE_INSTANCE_TOTAL being {total}"
    if number is None:
        raise NoInstance(f"CORE_INSTANCE_ID: got nothing, and the host name {host!r} ends in no ordinal; {takes}.")
    if number >= total:
        origin = "" if conf.instance_id is not None else f" from the host name {host!r}"
        raise NoInstance(f"CORE_INSTANCE_ID: got '{number}'{origin}, {takes}.")
    return Instance(number, total)


class Instances(Verbs):
    scripts = Scripts(__package__)

    def announce(self, number: int | str, node: str, *, if_free: bool = False) -> Announced:
        """Send a heartbeat and return the live instances. With `if_free`, do not announce the node while another
        live node has that number, so that of two nodes that start at once only one gets it. Without a number,
        announce none."""
        ttl = round(pacing.NODE_TTL_SECONDS * 1_000_000)
        seen: Announced = defaultdict(list)
        for raw in self._run("announce", id=number, node=node, ttl=ttl, if_free=int(if_free)):
            digits, _, name = raw.decode(errors="replace").partition(":")
            if digits.isdecimal():  # another program wrote the rest; they expire
                seen[int(digits)].append(name)
        return {one: sorted(names) for one, names in seen.items()}

    def withdraw(self, number: int, node: str) -> None:
        with redis_errors_translated():
            self._redis.zrem(self.keys.instances, f"{number}:{node}")


@cache
def all_instances() -> Instances:
    return Instances(refresh_settings(), patient(), patient())


def announced() -> Announced:
    """Return the live instances, without announcing one."""
    return all_instances().announce("", "")


def doubled(seen: Announced) -> Announced:
    return {number: nodes for number, nodes in sorted(seen.items()) if len(nodes) > 1}


def unannounced(seen: Announced, total: int) -> list[int]:
    """List the numbers that no node announces. The executions that belong to them wait."""
    return [number for number in range(total) if number not in seen]


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
        seen = all_instances().announce(instance.number, this_node.name, if_free=True)
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
            faults.update(all_instances().announce(instance.number, this_node.name))
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
        self._doubled: Announced = {}
        self._missing: list[int] = []
        self._complete_at = time.monotonic()

    def update(self, seen: Announced) -> None:
        several = doubled(seen)
        for number, nodes in several.items():
            if self._doubled.get(number) != nodes:
                log.error(
                    "CORE_INSTANCE_ID %d is announced by %s: they do the same work", number, ", ".join(nodes)
                )
        self._doubled = several
        missing = unannounced(seen, self._total)
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
        all_instances().withdraw(this_instance().number, this_node.name)
    except QueueUnavailable as exc:
        _log_silence(exc)


def _log_silence(reason: Exception) -> None:
    log.warning("%s cannot announce its CORE_INSTANCE_ID: %s", this_node.name, reason)


def connect() -> None:
    signals.celeryd_init.connect(refuse_without_a_number, dispatch_uid="instances.refuse")
    signals.worker_ready.connect(start, dispatch_uid="instances.start")
    signals.worker_shutdown.connect(stop, dispatch_uid="instances.stop")
