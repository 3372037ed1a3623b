"""ExecutionQueue: the operations on the keys of `keys`. Each is one Lua script, so each is atomic.

The rules of a claim: a member on the queue may be claimed; a claimed member has one live token; only a live token
can be completed or released.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from redis import Redis
from redis.exceptions import NoScriptError

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.conf import Refresh, pacing
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue import sets
from harbor_refresh.tasks.queue.claim import Batch, Claim, Completed, Page, Released, Stats, Whereabouts
from harbor_refresh.tasks.queue.keys import Keys
from harbor_refresh.tasks.queue.members import WAITING, Token
from harbor_refresh.tasks.queue.scripts import SCRIPTS
from harbor_refresh.tasks.queue.sets import PAGE, pages

#: Tokens in one page of processing. Larger than a page of writes, because reading is cheaper.
TOKENS_PAGE = 4_000


class ExecutionQueue:
    def __init__(self, conf: Refresh, patient: Redis, single: Redis) -> None:
        """The `patient` client may send a command twice, `single` does not."""
        self.conf = conf
        self.keys = Keys(conf.key_prefix)
        self._redis = patient
        self._single = single
        self._scripts = {name: patient.register_script(one.source()) for name, one in SCRIPTS.items()}

    def _run(self, name: str, *items: Any, once: bool = False, **named: Any) -> Any:
        script, client = SCRIPTS[name], self._single if once else self._redis
        keys = [getattr(self.keys, key) for key in script.keys]
        try:
            return self._scripts[name](keys, script.arguments(named, items), client)
        except NoScriptError as exc:  # another server has taken over since the library loaded it
            raise QueueUnavailable(f"Redis: {exc}") from exc

    @property
    def share(self) -> int:
        """The most members that one node may have in flight, including those of waiting subtasks."""
        return pacing.DEPTH * pacing.CHUNK

    def mark(self, members: Iterable[str]) -> bool:
        """Put members on the queue. True if the caller must send a tick, because no other process will."""
        wakes = [bool(self._run("mark", *page)) for page in pages(members)]
        return any(wakes)

    def claim(self, node: str, most: int) -> Batch:
        """Claim up to `most` members, no more than the live nodes have room for.

        Unreadable members were claimed like other members. They are completed at once, and the batch lists them.
        """
        first = page = self._page(node, most)
        claim = Claim(WAITING + node, first.stamp.decode(), ())
        raw, failed = first.members, first.failed_before
        # a short queue gets no second page, because what the first page has left rests
        while (
            first.backlog > pacing.SMALL and page.members and page.room > 0 and len(raw) < min(most, first.backlog)
        ):
            page = self._page(node, most - len(raw), further=first.stamp)
            raw, failed = raw + page.members, failed | page.failed_before
        taken, dropped = names.sorted_out(raw)
        for part in pages(dropped):
            self._run("complete", *part, suffix=claim.suffix, share=0, is_last=0)
        return Batch(
            claim.only(taken),
            attempts={text: times for member, times in failed.items() if (text := names.readable(member))},
            backlog=first.backlog,
            live_nodes=first.live_nodes,
            more=not first.wait_us and 0 < len(raw) < first.backlog and page.room >= pacing.CHUNK,
            wait=first.wait_us / 1_000_000,
            unreadable=tuple(dropped),
        )

    def _page(self, node: str, most: int, *, further: bytes = b"") -> Page:
        return Page(
            *self._run(
                "claim",
                node=node,
                holder=WAITING + node,
                most=min(PAGE, most),
                share=self.share,
                further=further,
                once=True,
            )
        )

    def take_over(self, claim: Claim, node: str) -> Claim:
        """Move the part of the claim that is still live to `node`, and return it."""
        stamp, taken = b"", list[str]()
        for page in pages(claim.members):
            stamp, count, *some = self._run(
                "take_over", *page, suffix=claim.suffix, node=node, new_stamp=stamp, once=True
            )
            taken += page if count == len(page) else [member.decode() for member in some[0]]
        return Claim(node, stamp.decode(), tuple(taken))

    def complete(self, claim: Claim) -> Completed:
        """Complete the claim. Members that were recovered meanwhile stay unchanged."""
        total, wake, left = 0, False, len(claim)
        for page in pages(claim.members):
            left -= len(page)
            count, wake = self._run(
                "complete", *page, suffix=claim.suffix, share=self.share, is_last=int(not left)
            )
            total += count
        return Completed(len(claim) - total, bool(wake))

    def fail(self, claim: Claim) -> Released:
        """Return the claim to the queue, and count a failure of each member."""
        return self.release(claim, limit=self.conf.max_attempts)

    def release(self, claim: Claim, *, limit: int = 0) -> Released:
        """Return the claim to the queue. Without a limit of failures, its members could not be worked on now."""
        total = Released()
        for page in pages(claim.members):
            returned, exhausted = self._run("release", *page, suffix=claim.suffix, limit=limit, once=True)
            total += Released(returned, tuple(member.decode() for member in exhausted))
        return total

    def lost(self, members: Iterable[str]) -> list[str]:
        """Return the members that are neither on the queue nor in flight.

        The tokens in flight are read twice: one pass may miss a token that is taken over during it. A claim is
        taken over once, so the other pass does not miss it as well.
        """
        missing = set(sets.missing(self._redis, self.keys.queue, members))
        for _ in range(2):
            if missing:
                missing -= {token.member for token in self.tokens()}
        return sorted(missing)

    def must_send_tick(self, *, ignore_pending_wake: bool = False, ignore_empty_queue: bool = False) -> bool:
        """Return whether the caller must send a tick (pipeline/wakeup.py). With `ignore_pending_wake`, a tick that
        was sent may have been lost. With `ignore_empty_queue`, marks may wait that only a tick takes onto the
        queue."""
        pending, empty = int(ignore_pending_wake), int(ignore_empty_queue)
        return bool(self._run("wake", ignore_pending_wake=pending, ignore_empty_queue=empty))

    def tick_has_ended(self) -> None:
        """Allow the next tick: this one has finished claiming."""
        self._redis.delete(self.keys.wake)

    def pause(self) -> None:
        """Stop all claims for a while: the database is down, and trying faster does not bring it back."""
        self._redis.set(self.keys.pause, 1, px=round(pacing.DATABASE_PAUSE_SECONDS * 1000))

    def heartbeat(self, node: str) -> int:
        """Note that this node is alive. Return how many nodes this heartbeat, and no other, found dead."""
        return int(self._run("heartbeat", node=node, is_last=0))

    def leave(self, node: str) -> None:
        """Note that this node stops by itself, so that its silence is no death."""
        self._run("heartbeat", node=node, is_last=1)

    def tick_ran(self) -> None:
        """Note that a tick looked for work; a claim notes that by itself."""
        self._redis.set(self.keys.ticked, self.stats().now)

    def stats(self) -> Stats:
        numbers, nodes, dead = self._run("look")
        return Stats(_pairs(nodes), _pairs(dead), *map(int, numbers))

    def oldest_waiting(self, most: int) -> list[tuple[str, int]]:
        """Return members whose time is noted, and when they were put on the queue; the oldest first."""
        noted: Any = self._redis.zrange(self.keys.waiting, 0, most - 1, withscores=True)
        found = [(text, int(moment)) for raw, moment in noted if (text := names.readable(raw))]
        gone = set(sets.missing(self._redis, self.keys.queue, [text for text, _ in found]))
        return [one for one in found if one[0] not in gone]

    def nodes_that_left(self) -> frozenset[str]:
        left = cast("list[bytes]", self._redis.zrange(self.keys.left, 0, -1))
        return frozenset(node.decode(errors="replace") for node in left)

    def whereabouts(self, member: str) -> Whereabouts:
        """Return where this member is. Reads all tokens in flight, in pages."""
        is_queued = bool(self._redis.sismember(self.keys.queue, member))
        failures = int(cast("bytes | None", self._redis.hget(self.keys.attempts, member)) or 0)
        tokens = {token for token in self.tokens() if token.member == member}
        return Whereabouts(is_queued, failures, tuple(sorted(tokens, key=lambda token: token.stamp)))

    def tokens(self) -> Iterator[Token]:
        """Yield every readable token in flight. A scan may yield a token twice."""
        for page in self.pages_of_tokens():
            yield from filter(None, map(Token.read, page))

    def pages_of_tokens(self) -> Iterator[Sequence[bytes]]:
        return sets.scan(lambda cursor: self._redis.sscan(self.keys.processing, cursor, count=TOKENS_PAGE))

    def pages_of_members(self) -> Iterator[Sequence[bytes]]:
        return sets.scan(lambda cursor: self._redis.sscan(self.keys.queue, cursor, count=PAGE))

    def drop(self, unreadable: Sequence[bytes]) -> None:
        for page in pages(unreadable):
            self._redis.srem(self.keys.processing, *page)


def _pairs(flat: Sequence[bytes]) -> tuple[tuple[str, int], ...]:
    """Return the members of a sorted set with their scores, the highest score first."""
    entries = zip(flat[::2], flat[1::2], strict=True)
    pairs = [(name.decode(errors="replace"), int(float(score))) for name, score in entries]
    return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))
