"""ExecutionQueue: the verbs over the keys of `keys`, each one Lua script, each atomic.

Owns what a claim means: a member on the queue may be claimed; a claimed member has one live token; only a
live token can be completed or given back. Knows nothing of the database: whether a member's execution
exists, and what its status is, is for the use cases.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar, cast

from redis import Redis

from executions.conf import Refresh
from executions.queue import members as names
from executions.queue import scripts
from executions.queue.claim import Batch, Claim
from executions.queue.connection import redis_errors_translated
from executions.queue.keys import Keys
from executions.queue.members import Token

T = TypeVar("T")

PAGE = 400
#: Short scripts, so that nobody waits: claiming 200 members keeps Redis busy for 0.3 ms, 1000 for 3.6 ms.
CLAIM_PAGE = 200
WAKE_TTL_MS = 5_000


@dataclass(frozen=True)
class Marked:
    added: int
    wake: bool


@dataclass(frozen=True)
class Completed:
    count: int
    outlived: int
    wake: bool


@dataclass(frozen=True)
class GivenBack:
    returned: int = 0
    exhausted: tuple[str, ...] = ()

    def __add__(self, other: "GivenBack") -> "GivenBack":
        return GivenBack(self.returned + other.returned, self.exhausted + other.exhausted)


@dataclass(frozen=True)
class Stats:
    now: int
    backlog: int
    in_flight: int
    failed_before: int
    pause_ms: int
    nodes: tuple[str, ...]


def pages(items: Iterable[T], size: int = PAGE) -> Iterator[list[T]]:
    iterator = iter(items)
    while page := list(islice(iterator, size)):
        yield page


class ExecutionQueue:
    def __init__(
        self,
        conf: Refresh,
        patient: Redis,
        single: Redis,
        source: Callable[[str], str] = scripts.source,
    ) -> None:
        self.conf = conf
        self.keys = Keys(conf.key_prefix)
        self._redis = patient
        self._patient = {name: patient.register_script(source(name)) for name in scripts.KEYS}
        self._single = {name: single.register_script(source(name)) for name in scripts.KEYS}
        self._ttl_us = round(conf.node_ttl * 1_000_000)

    def _run(self, name: str, *args: Any, once: bool = False) -> Any:
        script = (self._single if once else self._patient)[name]
        with redis_errors_translated():
            return script(keys=self.keys.named(*scripts.KEYS[name]), args=args)

    def add(self, members: Iterable[str]) -> Marked:
        """Mark executions. `wake` tells the caller to send a tick: nobody else will."""
        added, wake = 0, False
        for page in pages(members):
            one, woken = self._run("add", WAKE_TTL_MS, *page)
            added, wake = added + one, wake or bool(woken)
        return Marked(added, wake)

    def claim_batch(self, node: str, count: int) -> Batch:
        """Take up to `count` members, no more than the live nodes have room for.

        Members nobody can read are dropped here and told in the batch: they were claimed like the
        others, so dropping them is completing them.
        """
        stamp, backlog = b"0", None
        raw: list[bytes] = []
        attempts: list[bytes | int] = []
        while True:
            page = min(CLAIM_PAGE, count - len(raw))
            stamp, waited, in_flight, live, more, failures = self._run(
                "claim", node, page, self.conf.share, self._ttl_us, stamp, once=True
            )
            raw += more
            attempts += failures or [0] * len(more)
            backlog = waited if backlog is None else backlog
            if len(more) < page or len(raw) >= count:
                break
        readable = [names.readable(member) for member in raw]
        taken = tuple(member for member in readable if member is not None)
        dropped = tuple(member for member, text in zip(raw, readable, strict=True) if text is None)
        claim = Claim(node, stamp.decode(), taken)
        if dropped:
            self._run("complete", claim.suffix, self.conf.share, self._ttl_us, 1, *dropped)
        failed = {
            member: int(times)
            for member, times in zip(readable, attempts, strict=True)
            if member is not None and int(times)
        }
        return Batch(claim, failed, backlog, in_flight, live, dropped)

    def take_over(self, claim: Claim, node: str) -> Claim:
        """The part of the claim that is still live, now under `node`."""
        stamp, taken = b"0", []
        for page in pages(claim.members, CLAIM_PAGE):
            stamp, live = self._run("take_over", claim.suffix, node, stamp, *page, once=True)
            taken += live
        return Claim(node, stamp.decode(), tuple(member.decode() for member in taken))

    def mark_complete(self, claim: Claim) -> Completed:
        """Done with these. `outlived` of them were recovered meanwhile: nothing was changed for those."""
        total, wake = 0, False
        for page in pages(claim.members):
            count, woken = self._run("complete", claim.suffix, self.conf.share, self._ttl_us, WAKE_TTL_MS, *page)
            total, wake = total + count, wake or bool(woken)
        return Completed(total, len(claim) - total, wake)

    def mark_failed(self, claim: Claim, *, counted: bool = True) -> GivenBack:
        """Back to the queue, with an attempt counted unless the failure was nobody's."""
        limit = self.conf.max_attempts if counted else 0
        total = GivenBack()
        for page in pages(claim.members):
            returned, exhausted = self._run("give_back", claim.suffix, limit, *page, once=True)
            total += GivenBack(returned, tuple(member.decode() for member in exhausted))
        return total

    def recover_stale(self) -> tuple[GivenBack, tuple[bytes, ...]]:
        """Give back the claims of dead nodes, and any claim that is too old, in bounded pages.

        1. Go through processing a page at a time, and look who is alive after each page: a node gives a
           sign of life with every claim it takes over, so whoever is on the page is seen.
        2. A token whose node is silent or whose stamp is too old is a suspect (or too far in the future:
           then the clock has gone back).
        3. Give each suspect back by its token. If its owner completes it in the meantime, or another
           recovery was quicker, the token is gone and nothing happens. It counts as an attempt only if
           somebody had begun to work on it: to wait for a worker is no failure.

        Returns what went back, and the tokens nobody could read, which were dropped.
        """
        total, unreadable = GivenBack(), []
        for page in self._processing_pages():
            suspects = defaultdict(list)
            look = self.stats()
            alive = set(look.nodes)
            stale = round(self.conf.stale * 1_000_000)
            for raw in page:
                token = Token.read(raw)
                if token is None:
                    unreadable.append(raw)
                elif token.node not in alive or abs(look.now - token.stamp) > stale:
                    suspects[(token.node, token.stamp, token.is_worked_on)].append(token.member)
            for (node, stamp, counted), members in suspects.items():
                claim = Claim(node, str(stamp), tuple(members))
                total += self.mark_failed(claim, counted=counted)
        for chunk in pages(unreadable):
            with redis_errors_translated():
                self._redis.srem(self.keys.processing, *chunk)
        return total, tuple(unreadable)

    def lost(self, members: Iterable[str]) -> Iterator[str]:
        """Those of the members that are neither on the queue nor in flight."""
        for page in pages(members):
            known = self._run("known", *page)
            yield from (member for member, is_known in zip(page, known, strict=True) if not is_known)

    def wake(self) -> bool:
        """True if members wait and the caller must send the tick."""
        return bool(self._run("wake", WAKE_TTL_MS))

    def forget_wake(self) -> None:
        """This tick ends without a claim (which would have done it): the next who has a reason may send one."""
        with redis_errors_translated():
            self._redis.delete(self.keys.wake)

    def pause(self) -> None:
        """Nobody claims for a while: the database is away, and trying faster does not bring it back."""
        milliseconds = round(self.conf.pause * 1000)
        if milliseconds > 0:
            with redis_errors_translated():
                self._redis.set(self.keys.pause, 1, px=milliseconds)

    def sign_of_life(self, node: str) -> int:
        return int(self._run("beat", node, self._ttl_us))

    def stats(self) -> Stats:
        now, backlog, in_flight, failed, pause_ms, nodes = self._run("look", self._ttl_us)
        live = tuple(sorted(node.decode() for node in nodes))
        return Stats(int(now), backlog, in_flight, failed, pause_ms, live)

    def claims(self) -> Iterator[Token | bytes]:
        """Every token in flight; one that cannot be read comes as it is."""
        for page in self._processing_pages():
            for raw in page:
                yield Token.read(raw) or raw

    def _processing_pages(self) -> Iterator[Sequence[bytes]]:
        cursor = 0
        while True:
            with redis_errors_translated():
                cursor, page = cast(
                    "tuple[int, list[bytes]]",
                    self._redis.sscan(self.keys.processing, cursor, count=PAGE),
                )
            if page:
                yield page
            if not cursor:
                return
