"""Held queues: the queues that this worker does not take from, because they are paused.

Celery's own `cancel_consumer` ends with the worker that got it. So each worker reads the pauses by itself:

1. Before it takes its first message (`celeryd_after_setup`). If the database is away then, it holds every queue
   that may be paused, until it can read.
2. Every HEARTBEAT_SECONDS, in a thread of the worker's main process. It holds and frees queues in the
   thread of the consumer, which alone may do so. If the database is away, nothing changes.

The queues of the refreshes and of the ticks are never held: refreshing is paused before the claim, and ticks
repair. A queue is freed only if it was held here, so a queue that a person has cancelled with Celery's remote
control stays cancelled.

What if the connection to the broker breaks: the worker takes again from the queues that are selected, and a held
queue is deselected. What if this thread dies with its process: so does the worker. What if a worker has fetched
messages when their queue is held: it runs them.
"""

import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from django.db import connection

from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.broker.celery_queues import CYCLES, TICKS, WORK
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.operations.pauses import paused

log = logging.getLogger("harbor_refresh")

#: Never held: their names, and the channel of the older designs.
NEVER = frozenset({WORK, TICKS, CYCLES.name})


class HeldQueues:
    """The held queues of one worker. `queues` are those of its Celery app (`app.amqp.queues`)."""

    def __init__(self, queues: Any) -> None:
        self._queues = queues
        self._held: dict[str, Any] = {}
        self._was_unknown = False

    def begin(self) -> None:
        """Hold what is paused before anything is taken; everything that may be, if that cannot be known."""
        known = self._read()
        to_hold = self._may_be_held() if known is None else self._may_be_held() & known
        self._hold(to_hold, consumer=None)

    def follow(self, consumer: Any) -> None:
        """Read the pauses, and let the consumer's thread hold and free."""
        known = self._read()
        if known is not None:
            consumer.call_soon(self._apply, consumer, frozenset(known))

    def _apply(self, consumer: Any, known: frozenset[str]) -> None:
        """In the consumer's thread. A connection that breaks meanwhile is the consumer's own affair: it takes from
        the selected queues when it is back."""
        self._hold(self._may_be_held() & known, consumer)
        self._free(self._held.keys() - known, consumer)

    def _may_be_held(self) -> set[str]:
        return set(self._queues.consume_from) - NEVER

    def _hold(self, names: Iterable[str], consumer: Any) -> None:
        chosen = sorted(names)
        for name in chosen:
            self._held[name] = self._queues.consume_from[name]
            self._queues.deselect(name)
            if consumer is not None and consumer.task_consumer is not None:
                _try(consumer, consumer.task_consumer.cancel_by_queue, name)
        if chosen:
            signals.queues_held.send(sender=HeldQueues, queues=chosen)

    def _free(self, names: Iterable[str], consumer: Any) -> None:
        chosen = sorted(names)
        for name in chosen:
            queue = self._queues.select_add(self._held.pop(name))
            if consumer.task_consumer is not None and not consumer.task_consumer.consuming_from(name):
                consumer.task_consumer.add_queue(queue)
                _try(consumer, consumer.task_consumer.consume)
        if chosen:
            signals.queues_taken.send(sender=HeldQueues, queues=chosen)

    def _read(self) -> set[str] | None:
        """Return the paused queues; None if they cannot be read. The connection is closed: a worker's main process
        needs none until the next look."""
        try:
            known = set(paused())
        except Exception as exc:  # also a database that is not migrated yet: a worker does not end for that
            if not self._was_unknown:
                error = str(exc) if isinstance(exc, RefreshError) else said_by(exc).splitlines()[0]
                signals.pauses_unknown.send(sender=HeldQueues, error=error)
            self._was_unknown = True
            return None
        finally:
            connection.close()
        self._was_unknown = False
        return known


def _try(consumer: Any, act: Any, *words: Any) -> None:
    # the consumer notices a broken connection, makes another, and takes from the selected queues
    with suppress(*consumer.connection_errors, *consumer.channel_errors):
        act(*words)


_of_this_worker: HeldQueues | None = None
_ended = threading.Event()


def on_setup(instance: Any, **_: Any) -> None:
    """Receive Celery's signal that a worker is set up, and takes nothing yet."""
    global _of_this_worker  # noqa: PLW0603
    _of_this_worker = HeldQueues(instance.app.amqp.queues)
    _of_this_worker.begin()


def on_ready(sender: Any, **_: Any) -> None:
    """Receive Celery's signal that a worker is ready; `sender` is its consumer."""
    if _of_this_worker is not None:
        _ended.clear()
        threading.Thread(target=_follow, args=(_of_this_worker, sender), name="held_queues", daemon=True).start()


def on_shutdown(**_: Any) -> None:
    _ended.set()


def _follow(held: HeldQueues, consumer: Any) -> None:
    interval = pacing.HEARTBEAT_SECONDS
    while True:
        try:
            held.follow(consumer)
        except Exception:
            log.error("A worker could not follow the pauses of queues, it tries again", exc_info=True)
        if _ended.wait(interval):
            return
