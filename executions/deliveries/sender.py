"""The sender: an asyncio loop in a thread, which sends hundreds of requests at once."""

import asyncio
import queue
import threading
import time
from collections.abc import Sequence
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
    """The connections to one subscription's receiver, and its turns: it never has more requests than connections,
    so one that hangs takes nothing from the others."""

    def __init__(self, network: CheckedNetwork) -> None:
        self.connections = requests.connections(network)
        self.turns = asyncio.Semaphore(requests.CONNECTIONS)


class Sender:
    """Give requests to `submit`; take what became of them from `results`. Used with `with`.

    The caller's thread owns the database, this one the network. At the end requests that wait for their turn come
    back unsent, and those that are under way have until their timeout.
    """

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._timeout = pacing.DELIVER_TIMEOUT_SECONDS
        self._resolver = Resolver() if resolve is None else None
        self._network = CheckedNetwork(resolve or self._resolver, addresses.networks())  # type: ignore[arg-type]
        self._results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._receivers: dict[int, _Receiver] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    def __enter__(self) -> "Sender":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_sending()
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        if self._resolver:
            self._resolver.close()

    def stop_sending(self) -> None:
        """Begin no further request."""
        self._closing.set()

    def submit(self, given: Sequence[Request]) -> None:
        self._loop.call_soon_threadsafe(self._begin, given)

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

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._ready.set()
        await self._ended.wait()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for receiver in self._receivers.values():
            await receiver.connections.aclose()

    def _begin(self, given: Sequence[Request]) -> None:
        for one in given:
            task = self._loop.create_task(self._send(one))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _send(self, one: Request) -> None:
        receiver = self._receivers.get(one.claimed.subscription_id)
        if receiver is None:
            receiver = _Receiver(self._network)
            self._receivers[one.claimed.subscription_id] = receiver
        async with receiver.turns:
            if self._closing.is_set() or time.monotonic() > one.send_before:
                self._results.put(Result(one.claimed, Outcome.UNSENT))
                return
            answer = await requests.send(receiver.connections, one.message, self._timeout)
        self._results.put(answers.result(one.claimed, answer))
