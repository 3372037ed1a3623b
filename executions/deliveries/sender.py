"""The sender: it claims deliveries of webhooks and sends them, hundreds at once."""

import asyncio
import time
from collections import defaultdict
from functools import partial

from harbor_refresh.executions import pacing
from harbor_refresh.executions.deliveries import addresses, answers, claims, requests
from harbor_refresh.executions.deliveries.answers import Answer
from harbor_refresh.executions.deliveries.changes import read_changes
from harbor_refresh.executions.deliveries.claims import Claimed, Outcome, Result
from harbor_refresh.executions.deliveries.messages import Message, message, trial
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.models.notifications import Kind

#: How long results wait to be recorded together, while requests are under way.
WAIT_SECONDS = 0.1
#: Deliveries that a sender holds: of one webhook, and of all together, unless there are more webhooks. Those of a
#: webhook are more than its connections, so that no connection waits for the database.
MOST_OF_ONE = 200
MOST = 1_000
#: A lease, in timeouts of a request: a claimed delivery may wait for a connection until one is left.
LEASE_TIMEOUTS = 3


class _Receiver:
    """The connections to one webhook, and how many are free: one that hangs takes nothing from the others."""

    def __init__(self, network: requests.CheckedNetwork) -> None:
        self.connections = requests.connections(network)
        self.free_connections = asyncio.Semaphore(requests.CONNECTIONS)
        #: Whether a request of the last claim has failed. Then deliveries that wait for a connection are released.
        self.fails = False


class Sender:
    """Used with `with`: at its end it waits for the answers that are due, and records them.

    The asyncio loop runs only inside `record`. The database is asked between its runs, in the same thread, because
    Django refuses queries inside a loop.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._resolver = requests.Resolver()
        network = requests.CheckedNetwork(self._resolver, addresses.networks())
        self._receivers: defaultdict[int, _Receiver] = defaultdict(partial(_Receiver, network))
        self._sending: dict[asyncio.Task[Result], int] = {}
        self._is_ending = False
        webhooks = Subscription.objects.filter(kind=Kind.WEBHOOK, enabled=True).count()
        self._room = min(MOST_OF_ONE, MOST // max(1, webhooks))

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_ending = True
        try:
            while self._sending and kind is None:
                self.record()
            self._runner.run(self._end())
        finally:
            self._runner.close()
            self._resolver.close()

    @property
    def is_sending(self) -> bool:
        return bool(self._sending)

    def claim(self) -> int:
        """Claim what is due, up to the room of each webhook, begin to send it, and return how much it is."""
        timeout = pacing.DELIVER_TIMEOUT_SECONDS
        send_before = time.monotonic() + (LEASE_TIMEOUTS - 1) * timeout
        taken = claims.claim(self._room, LEASE_TIMEOUTS * timeout, sending=list(self._sending.values()))
        if not taken:
            return 0
        webhooks = Subscription.objects.in_bulk({one.subscription_id for one in taken})
        changes = read_changes(taken)
        for one in taken:
            if webhook := webhooks.get(one.subscription_id):  # else it was deleted, with its deliveries
                self._receivers[webhook.pk].fails = False
                sending = self._send(one, message(webhook, changes[one.id]), send_before)
                self._sending[self._runner.get_loop().create_task(sending)] = webhook.pk
        return len(taken)

    def record(self) -> None:
        """Wait a moment for results, and record them."""
        if self._sending:
            done, _ = self._runner.run(asyncio.wait(self._sending, timeout=WAIT_SECONDS))
            claims.record([one.result() for one in done])
            for one in done:
                del self._sending[one]

    def test(self, webhook: Subscription, seconds: float) -> Answer:
        """Send a test, which is no delivery."""
        sending = requests.send(self._receivers[webhook.pk].connections, trial(webhook), seconds)
        return self._runner.run(sending)

    async def _send(self, claimed: Claimed, message: Message, send_before: float) -> Result:
        receiver = self._receivers[claimed.subscription_id]
        async with receiver.free_connections:
            if receiver.fails or self._is_ending or time.monotonic() > send_before:
                return Result(claimed, Outcome.UNSENT)
            answer = await requests.send(receiver.connections, message, pacing.DELIVER_TIMEOUT_SECONDS)
        result = answers.result(claimed, answer)
        receiver.fails |= result.answered is False
        return result

    async def _end(self) -> None:
        for one in self._sending:
            one.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        for receiver in self._receivers.values():
            await receiver.connections.aclose()
