"""The deliverer: a thread that delivers to webhooks while there is something to deliver.

A thread and not a Celery task does this, because a task that waits for receivers would hold a worker's process.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection

from harbor_refresh.executions import pacing
from harbor_refresh.executions.deliveries import claims, http
from harbor_refresh.executions.deliveries.changes import read_changes
from harbor_refresh.executions.deliveries.claims import Claimed, Outcome, Result
from harbor_refresh.executions.deliveries.outbox import write_deliveries
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.text import said_by

if TYPE_CHECKING:
    from harbor_refresh.executions.deliveries.network import Resolve
    from harbor_refresh.executions.deliveries.sender import Sender

#: How often the outbox is looked at while there is work, and how long a result waits to be recorded with others.
LOOK_SECONDS = 0.1
GATHER_SECONDS = 0.05
#: How long it looks on after its last work: longer than a wake-up stands for the changes after it.
LINGER_SECONDS = 2.0
AWAY_SECONDS = 2.0
#: Deliveries of one webhook that this thread holds: at first, at most, and of all webhooks together.
FIRST_ROOM = 5
MOST_ROOM = 200
MOST_IN_FLIGHT = 1_000
#: A lease, in timeouts of a request: a claimed delivery may wait for its turn until one is left.
LEASE_TIMEOUTS = 3
EXPIRE_EVERY_SECONDS = 60.0


class Rooms:
    """How many deliveries of each webhook may be in flight. The room doubles while a webhook answers and is one
    after a failure, so a receiver that hangs holds few."""

    def __init__(self) -> None:
        self._most: dict[int, int] = defaultdict(lambda: FIRST_ROOM)
        self.in_flight: Counter[int] = Counter()

    @property
    def total(self) -> int:
        return self.in_flight.total()

    def left(self) -> dict[int, int]:
        """Return the room of each webhook that does not have FIRST_ROOM."""
        known = {*self._most, *self.in_flight}
        return {pk: max(0, self._most[pk] - self.in_flight[pk]) for pk in known}

    def enter(self, taken: list[Claimed]) -> None:
        self.in_flight.update(one.subscription_id for one in taken)

    def leave(self, results: list[Result]) -> None:
        failed = {one.claimed.subscription_id for one in results if one.answered is False}
        answered = {one.claimed.subscription_id for one in results if one.answered} - failed
        self.in_flight.subtract(one.claimed.subscription_id for one in results)
        self.in_flight = +self.in_flight
        self._most.update(dict.fromkeys(failed, 1))
        self._most.update({pk: min(MOST_ROOM, 2 * self._most[pk]) for pk in answered})


class Deliverer:
    """One in a process. That of a worker (tasks/operations/deliverer_thread.py) has the first three methods."""

    def __init__(self, resolve: "Resolve | None" = None) -> None:
        self._resolve = resolve
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._woken = False
        self._stopping = threading.Event()

    def ask_handlers(self) -> None:
        """Called when handlers may have something to do."""

    def is_held(self) -> bool:
        """While this is true, no delivery is claimed; what is being sent goes on."""
        return False

    def wake_later(self, seconds: float) -> None:
        """Called before the thread ends, with the seconds until the next delivery is due, if one waits."""

    def wake(self) -> None:
        """See to it that a look begins after this call."""
        with self._lock:
            self._woken = True
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="deliverer", daemon=True)
                self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Claim nothing more, and wait so long for the answers that are due. Leases cover the rest."""
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        try:
            while self._is_wanted():
                try:
                    self.deliver()
                    self._look_ahead()
                except DatabaseAway as exc:
                    signals.database_away.send(sender=Deliverer, count=0, error=str(exc))
                    self._try_later()
                except Exception as exc:  # a fault of ours, or of a row: what is leased comes again
                    signals.deliverer_failed.send(sender=Deliverer, error=said_by(exc))
                    self._try_later()
        finally:
            connection.close()
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _look_ahead(self) -> None:
        """Ask to be woken when the next delivery is due: a retry, or the end of a lease or of a circuit's pause.

        What if the process dies before that moment: the schedule wakes a deliverer. What if deliveries are paused:
        the moment passes, and only moments to come are asked for, so nothing looks again and again.
        """
        if not self._stopping.is_set() and (seconds := claims.next_due()) is not None:
            self.wake_later(seconds)

    def _try_later(self) -> None:
        self._stopping.wait(AWAY_SECONDS)
        self._woken = True

    def _is_wanted(self) -> bool:
        """Whether there was a wake-up since the last look began. If not, the thread ends, under the lock, so that
        no wake-up comes between."""
        with self._lock:
            wanted = self._woken and not self._stopping.is_set()
            if not wanted:
                self._thread = None
            return wanted

    def deliver(self) -> None:
        """Deliver what is due, until nothing was to do for a while.

        1. Write the deliveries of new changes.
        2. Claim as many as each webhook has room for, and give them to the sender.
        3. Record the results as they come, and go on. If the first look finds nothing, another process has the
           work, and the pass ends.

        What if the process dies: what was claimed is due again when its lease ends, and is sent under the same id.
        What if this process cannot send (http.py): it does all but 2, and what is due waits for one that can.
        """
        rooms = Rooms()
        looked = expired = float("-inf")
        lingers_until = 0.0
        with _sender(self._resolve) as sender:
            while True:
                now = time.monotonic()
                told = 0
                if now >= expired + EXPIRE_EVERY_SECONDS:
                    claims.expire()
                    expired = now
                is_look = now >= looked + LOOK_SECONDS
                if is_look:
                    self._woken, looked = False, now
                    told = write_deliveries()
                    self.ask_handlers()
                taken = []
                if sender is not None and self._stopping.is_set():
                    sender.stop_sending()
                elif sender is not None:
                    taken = self._claim(rooms, sender)
                if told or taken:
                    lingers_until = now + LINGER_SECONDS
                elif not rooms.total and (self._stopping.is_set() or (now > lingers_until and not self._woken)):
                    return
                results = sender.results(LOOK_SECONDS, GATHER_SECONDS) if sender and rooms.total else []
                if results:
                    rooms.leave(results)
                    claims.record(results)
                elif not rooms.total:
                    self._stopping.wait(LOOK_SECONDS)

    def _claim(self, rooms: Rooms, sender: "Sender") -> list[Claimed]:
        from harbor_refresh.executions.deliveries.messages import message
        from harbor_refresh.executions.deliveries.sender import Request

        if rooms.total >= MOST_IN_FLIGHT or self.is_held():
            return []
        timeout = pacing.DELIVER_TIMEOUT_SECONDS
        until = time.monotonic() + (LEASE_TIMEOUTS - 1) * timeout
        taken = claims.claim_for_webhooks(FIRST_ROOM, rooms.left(), LEASE_TIMEOUTS * timeout)
        if taken:
            rooms.enter(taken)
            # read after the claim, so no request is signed with an older secret than the claim knows
            webhooks = Subscription.objects.prefetch_related("old_secrets").in_bulk(
                {one.subscription_id for one in taken}
            )
            changes = read_changes(taken)
            sender.submit(
                [
                    Request(one, message(webhooks[one.subscription_id], changes[one.id]), until)
                    for one in taken
                    if one.subscription_id in webhooks
                ]
            )
            gone = [one for one in taken if one.subscription_id not in webhooks]
            rooms.leave([Result(one, Outcome.UNSENT) for one in gone])  # its subscription was deleted
        return taken


@contextmanager
def _sender(resolve: "Resolve | None") -> Iterator["Sender | None"]:
    if not http.can_send():
        yield None
        return
    from harbor_refresh.executions.deliveries.sender import Sender

    with Sender(resolve) as sender:
        yield sender
