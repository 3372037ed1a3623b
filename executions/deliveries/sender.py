"""The sender: each receiver has threads of its own, which send its requests."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harbor_refresh.executions import pacing
from harbor_refresh.executions.deliveries import addresses, answers, requests
from harbor_refresh.executions.deliveries.claims import Claimed, Outcome, Result
from harbor_refresh.executions.deliveries.messages import Message
from harbor_refresh.executions.deliveries.network import CheckedNetwork, Resolve, Resolver


@dataclass(frozen=True)
class Request:
    """A claimed delivery and its message. After `send_before`, by the monotonic clock, its lease is too short."""

    claimed: Claimed
    message: Message
    send_before: float


class _Receiver:
    """The threads and connections to one subscription's receiver, at most CONNECTIONS of each, so a receiver that
    hangs takes nothing from the others. The threads are daemons: the end of a process does not wait for them."""

    def __init__(self, network: CheckedNetwork, send: Callable[["_Receiver", Request], None]) -> None:
        self.connections = requests.connections(network)
        self._send = send
        self._waiting: queue.Queue[Request | None] = queue.Queue()
        self._threads = 0

    def give(self, one: Request) -> None:
        self._waiting.put(one)
        if self._threads < requests.CONNECTIONS:
            self._threads += 1
            threading.Thread(target=self._work, name="sender", daemon=True).start()

    def _work(self) -> None:
        while one := self._waiting.get():
            self._send(self, one)

    def close(self) -> None:
        for _ in range(self._threads):
            self._waiting.put(None)
        self.connections.close()


class Sender:
    """Give requests to `submit`; take what became of them from `results`. Used with `with`.

    The caller's thread owns the database, the others the network. At the end requests that wait for their turn
    come back unsent, and those that are under way have until their timeout.
    """

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._timeout = pacing.DELIVER_TIMEOUT_SECONDS
        self._resolver = Resolver() if resolve is None else None
        self._network = CheckedNetwork(resolve or self._resolver, addresses.networks())  # type: ignore[arg-type]
        self._results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._receivers: dict[int, _Receiver] = {}
        self._closing = threading.Event()

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_sending()
        for receiver in self._receivers.values():
            receiver.close()
        if self._resolver:
            self._resolver.close()

    def stop_sending(self) -> None:
        """Begin no further request."""
        self._closing.set()

    def submit(self, given: Sequence[Request]) -> None:
        for one in given:
            receiver = self._receivers.get(one.claimed.subscription_id)
            if receiver is None:
                receiver = _Receiver(self._network, self._send)
                self._receivers[one.claimed.subscription_id] = receiver
            receiver.give(one)

    def results(self, wait: float, gather: float) -> list[Result]:
        """Wait for a result; then return those that follow it within `gather` seconds as well."""
        found: list[Result] = []
        try:
            found.append(self._results.get(timeout=wait))
            until = time.monotonic() + gather
            while (left := until - time.monotonic()) > 0:
                found.append(self._results.get(timeout=left))
        except queue.Empty:
            pass
        return found

    def _send(self, receiver: _Receiver, one: Request) -> None:
        if self._closing.is_set() or time.monotonic() > one.send_before:
            self._results.put(Result(one.claimed, Outcome.UNSENT))
        else:
            answer = requests.send(receiver.connections, one.message, self._timeout)
            self._results.put(answers.result(one.claimed, answer))
