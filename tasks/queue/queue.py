"""ExecutionQueue: the operations on the keys of `keys`. Each is one Lua script, so each is atomic.

Owns the rules of a claim: a member on the queue may be claimed; a claimed member has one live token; only a
live token can be completed or released. Knows nothing of the database: the use cases know whether a member's
execution exists, and what its status is.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from redis import Redis

from tasks.conf import Refresh
from tasks.queue import members as names
from tasks.queue import sets
from tasks.queue.claim import Batch, Claim
from tasks.queue.connection import redis_errors_translated
from tasks.queue.members import Token
from tasks.queue.scripts import SCRIPTS
from tasks.queue.sets import PAGE, pages
from tasks.queue.verbs import Verbs

#: Tokens in one page of processing. Larger than a page of writes, because reading is cheaper.
LOOK_PAGE = 4_000
#: Up to this backlog every execution is treated by itself: it gets its own subtask, and rests if it is hot.
SMALL = 16
WAKE_TTL_MS = 2_000


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
class Sign:
    """The number of live nodes, and of the nodes that this heartbeat, and no other, found dead."""

    live: int
    silent: int


@dataclass(frozen=True)
class Stats:
    """`since`: heartbeats have come without a gap since then. If it `is_settled`, a node that is not in `nodes` is
    dead."""

    now: int
    backlog: int
    in_flight: int
    failed_before: int
    pause_ms: int
    nodes: tuple[str, ...]
    since: int
    is_settled: bool


def _claim_of(raw: bytes) -> bytes:
    """Return the claim of a token without parsing it: the text after its second colon."""
    return raw.split(b":", 2)[-1]


class ExecutionQueue(Verbs):
    scripts = SCRIPTS

    def __init__(
        self, conf: Refresh, patient: Redis, single: Redis, edited: Callable[[str], str] = lambda text: text
    ) -> None:
        super().__init__(conf, patient, single, edited)
        self._rest_us = round(conf.rest * 1_000_000)

    def add(self, members: Iterable[str]) -> Marked:
        """Mark executions. If `wake` is set the caller must send a tick, because no other process will."""
        added, wake = 0, False
        for page in pages(members):
            one, woken = self._run("add", WAKE_TTL_MS, SMALL, *page)
            added, wake = added + one, wake or bool(woken)
        return Marked(added, wake)

    def claim_batch(self, node: str, count: int) -> Batch:
        """Claim up to `count` members, no more than the live nodes have room for.

        Unreadable members are dropped here and listed in the batch. They were claimed like other members, so to
        drop them is to complete them.
        """
        conf = self.conf
        stamp, cursor, raw, attempts = b"0", b"0", list[bytes](), dict[bytes, int]()
        backlog = live = wait = 0
        room = count
        while left := min(room, count - len(raw)):
            stamp, cursor, waited, room, nodes, more, failures, wait = self._run(
                "claim",
                *(node, min(PAGE, left), conf.size, conf.share, self._ttl_us, self._rest_us),
                *(SMALL, WAKE_TTL_MS, stamp, cursor, live),
                once=True,
            )
            if not raw:
                backlog, live = waited, nodes
            raw += more
            attempts |= {name: int(times) for name, times in zip(more, failures, strict=False) if int(times)}
            # a short queue gets no second page, because a second page does not let hot members rest
            is_looked_at = self._rest_us > 0 and backlog <= SMALL
            if not more or wait or is_looked_at or len(raw) >= backlog:
                break
        taken, dropped = names.sorted_out(raw)
        claim = Claim(node, stamp.decode(), tuple(taken))
        if dropped:
            self._run("complete", claim.suffix, 0, self._ttl_us, 1, *dropped)
        failed = {text: times for name, times in attempts.items() if (text := names.readable(name))}
        more = not wait and 0 < len(raw) < backlog and room >= conf.size
        return Batch(claim, failed, backlog, live, more, wait / 1_000_000, tuple(dropped))

    def take_over(self, claim: Claim, node: str) -> Claim:
        """Move the part of the claim that is still live to `node`, and return it."""
        stamp, taken = b"0", list[str]()
        for page in pages(claim.members):
            stamp, count, *some = self._run("take_over", claim.suffix, node, stamp, *page, once=True)
            taken += page if count == len(page) else [member.decode() for member in some[0]]
        return Claim(node, stamp.decode(), tuple(taken))

    def mark_complete(self, claim: Claim) -> Completed:
        """Complete the claim. `outlived` of its members were recovered meanwhile, and stay unchanged."""
        total, wake, left = 0, False, len(claim)
        for page in pages(claim.members):
            left -= len(page)
            share = 0 if left else self.conf.share
            count, wake = self._run("complete", claim.suffix, share, self._ttl_us, WAKE_TTL_MS, *page)
            total += count
        return Completed(total, len(claim) - total, bool(wake))

    def mark_failed(self, claim: Claim, *, counted: bool = True) -> GivenBack:
        """Release the claim to the queue. It counts as an attempt unless the members are not to blame."""
        limit = self.conf.max_attempts if counted else 0
        total = GivenBack()
        for page in pages(claim.members):
            returned, exhausted = self._run("give_back", claim.suffix, limit, *page, once=True)
            total += GivenBack(returned, tuple(member.decode() for member in exhausted))
        return total

    def recover_stale(self, *, idle: bool = False) -> tuple[GivenBack, tuple[bytes, ...]]:
        """Release the claims of dead nodes and claims that are too old, in bounded pages.

        1. Read processing in pages. A claim is judged once, by the first of its tokens.
        2. Suspect a claim whose node is silent, or whose stamp is too old, or in the future (then the clock has
           gone back). Read the live nodes again before a node counts as silent: a node sends a heartbeat with
           every claim it takes over, so each live node with a token on the page is seen. If nothing waits with the
           broker (`idle`), also suspect a claim of any node that has waited for longer than a node may be silent:
           the worker that had its message is dead, and the message is lost with it.
        3. Release each suspect by its token. If its owner completes it meanwhile, or another recovery was
           quicker, the token is gone and nothing happens. It counts as an attempt only if a process had begun to
           work on it and is dead or too slow: to wait for a worker is no failure.

        Returns what was released, and the unreadable tokens, which were dropped.
        """
        total, unreadable = GivenBack(), list[bytes]()
        sound = set[bytes]()
        look = self.stats()
        for page in self._processing_pages():
            suspects = [raw for raw in page if _claim_of(raw) not in sound]
            tokens = {raw: Token.read(raw) for raw in suspects}
            if any(token and token.node not in look.nodes for token in tokens.values()):
                look = self.stats()
            outlived = defaultdict(list)
            for raw, token in tokens.items():
                if token is None:
                    unreadable.append(raw)
                elif self._is_sound(token, look, idle=idle):
                    sound.add(_claim_of(raw))
                else:
                    outlived[(token.node, token.stamp, self._is_failure(token, look))].append(token.member)
            for (node, stamp, counted), members in outlived.items():
                claim = Claim(node, str(stamp), tuple(members))
                total += self.mark_failed(claim, counted=counted)
        for chunk in pages(unreadable):
            with redis_errors_translated():
                self._redis.srem(self.keys.processing, *chunk)
        return total, tuple(unreadable)

    def _is_sound(self, token: Token, look: Stats, *, idle: bool) -> bool:
        """Whether a claim stays. To release too early is harmless: its completion is fenced, and its message finds
        no tokens. A token of a live node from before a gap may be one that a restarted Redis still has although
        its node has completed it."""
        limit = self.conf.node_ttl if idle and not token.is_worked_on else self.conf.stale
        is_from_before_a_gap = look.is_settled and token.stamp < look.since
        return token.node in look.nodes and not is_from_before_a_gap and not self._is_older(token, look, limit)

    def _is_failure(self, token: Token, look: Stats) -> bool:
        """True if a process had begun to work on it, and is dead or too slow."""
        is_dead = token.node not in look.nodes and look.is_settled
        return token.is_worked_on and (is_dead or self._is_older(token, look, self.conf.stale))

    def _is_older(self, token: Token, look: Stats, seconds: float) -> bool:
        return abs(look.now - token.stamp) > seconds * 1_000_000

    def lost(self, members: Iterable[str]) -> list[str]:
        """Return the members that are neither on the queue nor in flight.

        The tokens in flight are read twice: one pass may miss a token that is taken over during it. A claim is
        taken over once, so the other pass does not miss it as well.
        """
        missing = set(sets.missing(self._redis, self.keys.queue, members))
        for _ in range(2):
            if missing:
                missing -= {token.member for token in self.claims() if isinstance(token, Token)}
        return sorted(missing)

    def wake(self, *, anyway: bool = False) -> bool:
        """Return whether members wait and the caller must send a tick; `anyway`: even if a tick was sent."""
        return bool(self._run("wake", WAKE_TTL_MS, int(anyway)))

    def forget_wake(self) -> None:
        """Allow the next tick: this one has finished claiming."""
        with redis_errors_translated():
            self._redis.delete(self.keys.wake)

    def pause(self) -> None:
        """Stop all claims for a while: the database is away, and trying faster does not bring it back."""
        milliseconds = round(self.conf.pause * 1000)
        if milliseconds > 0:
            with redis_errors_translated():
                self._redis.set(self.keys.pause, 1, px=milliseconds)

    def sign_of_life(self, node: str) -> Sign:
        live, silent = self._run("beat", node, self._ttl_us)
        return Sign(live, silent)

    def stats(self) -> Stats:
        answer = self._run("look", self._ttl_us)
        now, backlog, in_flight, failed, pause_ms, nodes, since, is_settled = answer
        live = tuple(sorted(node.decode() for node in nodes))
        return Stats(int(now), backlog, in_flight, failed, pause_ms, live, int(since), bool(is_settled))

    def claims(self) -> Iterator[Token | bytes]:
        """Yield every token in flight; an unreadable token is yielded as its bytes."""
        for page in self._processing_pages():
            for raw in page:
                yield Token.read(raw) or raw

    def _processing_pages(self) -> Iterator[Sequence[bytes]]:
        return sets.scan(self._redis, self.keys.processing, LOOK_PAGE)
