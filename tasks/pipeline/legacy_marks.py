"""Legacy marks: take the marks that Harbor itself writes onto the queue, and turn ours back into Harbor's.

Harbor's keys (tasks/queue/keys.py) have no index, so all keys of the server are looked at, a page at a time. Each
tick takes some marks in (`take_some`), so that an old release may go on writing beside the new one. A command
moves all marks back. One script moves a mark, so no program sees it in both places or in none.

If the process dies between two pages, the next tick or the next run of the command moves the rest. If two
processes do it at once, each script moves what it finds at that moment, so each mark moves once. If an old release
refreshes an execution whose key is taken at that moment, it is refreshed twice.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from time import monotonic, sleep
from typing import cast

from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.conf.pacing import EXPORT_PASSES, LOOK, LOOKS_A_TICK, ROUND_SECONDS
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.operations.pauses import is_refreshing_paused
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue import sets
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.connection import patient, single
from harbor_refresh.tasks.queue.keys import HARBORS_PATTERN, HARBORS_SET, harbors_keys, member_of_harbors
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.tasks.queue.sets import pages
from harbor_refresh.tasks.strategies import strategy


class LegacyMarks(ExecutionQueue):
    """The queue, and Harbor's marks beside it."""

    @property
    def is_set_the_queue(self) -> bool:
        """Whether the queue is Harbor's own set, so that its members are marks of Harbor as they are."""
        return self.keys.queue == HARBORS_SET

    def look(self) -> int:
        """Take some marks onto the queue, if a look is due, and return how many.

        The key `legacy_rest` exists for the time that the pages of a look take at LEGACY_KEYS_PER_SECOND, and no
        process looks while it exists, so all together keep to the rate. A longer time comes from a clock that has
        gone back, so it is ignored, and so is a key without expiry. If the process dies during a look, the next
        one reads the same pages again. After the last key the rest is longer, or a small server would be read
        again and again.
        """
        of_a_page = 1000 * LOOK / pacing.LEGACY_KEYS_PER_SECOND
        rest, of_all = self.keys.legacy_rest, round(LOOKS_A_TICK * of_a_page)
        left = self._redis.pttl(rest)
        is_resting = 0 <= left <= max(of_all, 1000 * ROUND_SECONDS)
        if is_resting or not self._redis.set(rest, 1, nx=left == -2, px=of_all):
            return 0
        noted = cast("bytes | None", self._redis.get(self.keys.legacy_cursor)) or b""
        begin = int(noted) if noted.isdigit() and len(noted) < 20 else 0
        found = list(islice(self.pages(begin), LOOKS_A_TICK))
        cursor = found[-1][0]
        self._redis.set(self.keys.legacy_cursor, cursor)
        if not cursor:
            self._redis.pexpire(rest, round(max(len(found) * of_a_page, 1000 * ROUND_SECONDS)))
        return sum(count for _, count in found)

    def pages(self, cursor: int = 0) -> Iterator[tuple[int, int]]:
        """Take Harbor's set onto the queue, and its keys from this cursor on, page by page. Yields the cursor of
        the next page of keys, which is 0 after the last, and how many marks of the page were taken."""
        if not self.is_set_the_queue:
            for marks in sets.scan(lambda at: self._redis.sscan(HARBORS_SET, at, count=LOOK)):
                yield cursor, self._take(marks, [names.readable(one) for one in marks], HARBORS_SET)
        while True:
            found = self._redis.scan(cursor, match=HARBORS_PATTERN, count=LOOK)
            cursor, marks = cast("tuple[int, list[bytes]]", found)
            yield cursor, self._take(marks, [member_of_harbors(one) for one in marks], "")
            if not cursor:
                return

    def _take(self, marks: Sequence[bytes], members: Sequence[str | None], of_set: str) -> int:
        """Take these marks, as these members. A mark without a member stays, because no claim could read it."""
        found = [(mark, member) for mark, member in zip(marks, members, strict=True) if member]
        if taken := sum(self._move(part, of_set) for part in pages(found)):
            crash_points.reach("imported", [])
        return taken

    def _move(self, marks: Iterable[tuple[str | bytes, str]], of_set: str, *, back: bool = False) -> int:
        """Move each mark onto the queue as its member, or `back`, and return how many there were."""
        return int(self._run("move_legacy", *chain.from_iterable(marks), set=of_set, back=int(back)))

    def export(self, *, as_set: bool) -> Iterator[int]:
        """Release the claims, and then turn the queue into Harbor's marks, page by page. Yields how many members
        each page moved. A member that is claimed or marked meanwhile may be left. If Harbor's set is to be
        written and is the queue, it is enough to release the claims."""
        is_turned = as_set and self.is_set_the_queue
        claims: dict[tuple[str, str], set[str]] = defaultdict(set)  # a scan may yield a token twice
        for token in self.tokens():
            claims[token.holder, str(token.stamp)].add(token.member)
        for (holder, stamp), members in claims.items():
            count = self.release(Claim(holder, stamp, tuple(members))).returned
            if is_turned:
                yield count
        if is_turned:
            self._redis.delete(self.keys.attempts)  # the failures of its members are nothing to Harbor
            return
        for page in self.pages_of_members():
            for part in pages(names.sorted_out(page)[0], LOOK):
                marks = [(member if as_set else harbors_keys(member)[0], member) for member in part]
                yield self._move(marks, HARBORS_SET if as_set else "", back=True)


@cache
def legacy_marks() -> LegacyMarks:
    return LegacyMarks(refresh_settings(), patient(), single())


def take_some() -> None:
    """Take Harbor's marks onto the queue as far as it is time to. For a tick alone.

    A look that Redis refuses (its rights do not include these keys) is told and not raised, because the tick has
    other work. If Redis is down, the claim that follows says so.
    """
    try:
        if taken := legacy_marks().look():
            signals.legacy_taken.send(sender=take_some, count=taken)
    except QueueUnavailable as exc:
        signals.legacy_unread.send(sender=take_some, error=str(exc))


def export_marks(*, as_set: bool = False, on_page: Callable[[int], None] = lambda _: None) -> int:
    """Turn all that is on the queue or in flight into Harbor's marks, and return how many. `on_page` is told how
    many there are by then.

    1. Refuse if workers run and refreshing is not paused. A killed process counts as live for NODE_TTL_SECONDS.
    2. Release the claims, then move the queue, and repeat until a pass moves nothing: while the command reads, a
       claim may be released, and a worker may claim.

    A claim is released even if its process lives. If its message comes later, it finds its tokens gone and does
    nothing. If a worker is refreshing it, the refresh is committed, its completion changes nothing, and Harbor
    refreshes the execution once more. Marks of a program that still marks stay on the queue.
    """
    if (design := strategy()).runs_cycles:
        raise Refused(f"the strategy is {design.name}: its marks are Harbor's own, or it has no claims to move")
    marks, total, deadline = legacy_marks(), 0, monotonic() + pacing.NODE_TTL_SECONDS + 1
    while (live := {*marks.stats().nodes} - marks.nodes_that_left()) and not is_refreshing_paused():
        if monotonic() > deadline:
            raise Refused(
                f"the ticks of {plural(len(live), 'live process', 'live processes')} of workers would take the "
                "marks in again. Stop the workers and beat, or run: manage.py harbor pause"
            )
        sleep(0.1)
    for _ in range(EXPORT_PASSES):
        before = total
        for count in marks.export(as_set=as_set):
            total += count
            if count:
                crash_points.reach("exported", [])
            on_page(total)
        if total == before:
            return total
    return total


def count_left(*, as_set: bool) -> int:
    """Return how many marks of ours there are that an export would turn, or could not read."""
    marks = legacy_marks()
    stats, is_queue_ours = marks.stats(), not (as_set and marks.is_set_the_queue)
    return stats.in_flight + (stats.backlog if is_queue_ours else 0)
