"""LegacyTransfer: move Harbor's own marks onto the queue, and back.

Harbor's keys have no index, so all keys of the server are looked at, a page at a time. Each page is one script, so
at each moment a mark is in one place.

Harbor works with one Redis, or with one behind Sentinel, and never with a Redis Cluster. So on a Cluster there are
no such keys, and a script could not move them, because they are in other slots than the queue.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.pacing import LOOK
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.connection import patient, redis_errors_translated, single
from harbor_refresh.tasks.queue.keys import HARBORS_SET
from harbor_refresh.tasks.queue.legacy_keys import FORM, PATTERN, READERS
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.tasks.queue.scripts import Script, Scripts
from harbor_refresh.tasks.queue.sets import pages, sized_pages
from harbor_refresh.tasks.queue.verbs import Verbs

LEGACY = Scripts(
    __package__,
    {
        "take_legacy": Script(("queue", "waiting", "legacy"), ("match", "set", "count", "rate")),
        "import_keys": Script(("queue", "waiting"), ("cursor", "match", "count", "is_dry_run")),
        "import_set": Script(("queue", "waiting"), ("cursor", "set", "count", "is_dry_run")),
        "export": Script(("queue", "processing", "attempts", "waiting"), ("key", "set")),
    },
)


@dataclass(frozen=True)
class Page:
    """`looked_at`: keys of the server, more or less. `left`: marks that cannot be read."""

    looked_at: int
    taken: int
    left: int


@dataclass(frozen=True)
class Look:
    """How many marks a look took onto the queue, and in how many seconds the next look is due."""

    taken: int
    next_in: float

    @property
    def is_due_again(self) -> bool:
        return not self.next_in


class LegacyTransfer(Verbs):
    scripts = LEGACY

    @property
    def is_set_the_queue(self) -> bool:
        """Whether the queue is Harbor's own set, so that its members are marks of Harbor as they are."""
        return self.keys.queue == HARBORS_SET

    def look(self) -> Look:
        """Take a page of marks onto the queue, if it is time to look. All processes together keep to the rate."""
        rate = pacing.LEGACY_KEYS_PER_SECOND
        taken, left_us = self._run(
            "take_legacy",
            *READERS,
            match=PATTERN,
            set="" if self.is_set_the_queue else HARBORS_SET,
            count=min(LOOK, rate),
            rate=rate,
        )
        return Look(taken, left_us / 1_000_000)

    def import_keys(self, *, is_dry_run: bool = False) -> Iterator[Page]:
        """Take all keys onto the queue, page by page. A key that is written meanwhile may be taken or not. A dry
        run changes nothing and says what would be taken and left. It counts a key twice that Redis tells twice, as
        it may while it resizes its table."""
        cursor = b"0"
        while True:
            cursor, taken, left = self._run(
                "import_keys", *READERS, cursor=cursor, match=PATTERN, count=LOOK, is_dry_run=int(is_dry_run)
            )
            yield Page(LOOK, taken, left)
            if cursor == b"0":
                return

    def import_set(self, *, is_dry_run: bool = False) -> Iterator[Page]:
        """Move the whole set onto the queue, page by page. A dry run is that of `import_keys`."""
        cursor = b"0"
        while not self.is_set_the_queue:
            cursor, taken, left = self._run(
                "import_set", cursor=cursor, set=HARBORS_SET, count=LOOK, is_dry_run=int(is_dry_run)
            )
            yield Page(0, taken, left)
            if cursor == b"0":
                return

    def export(self, queue: ExecutionQueue, *, as_set: bool) -> Iterator[int]:
        """Turn claims and then the queue into Harbor's marks, page by page. Yields how many members each page
        moved. A member that is claimed or marked meanwhile may be left. If the queue is Harbor's own set, and the
        set is written, only the claims are turned."""
        form = "" if as_set else FORM
        for groups in sized_pages(((group, len(group)) for group in _tokens_by_member(queue)), LOOK):
            yield self._run("export", *(token for group in groups for token in group), key=form, set=HARBORS_SET)
        if as_set and self.is_set_the_queue:
            return
        for page in queue.pages_of_members():
            for part in pages(names.sorted_out(page)[0], LOOK):
                yield self._run("export", *part, key=form, set=HARBORS_SET)


def _tokens_by_member(queue: ExecutionQueue) -> Iterable[Sequence[str]]:
    """Return the tokens in flight, those of one member together, so that one script moves them all."""
    found: dict[str, dict[str, None]] = {}
    for token in queue.tokens():
        if not isinstance(token, bytes):
            found.setdefault(token.member, {})[f"{token.member}:{token.holder}:{token.stamp}"] = None
    return [list(group) for group in found.values()]


@cache
def legacy_transfer() -> LegacyTransfer:
    return LegacyTransfer(refresh_settings(), patient(), single())


def keys_of_server() -> int:
    """Return how many keys there are, of all programs."""
    with redis_errors_translated():
        return int(patient().dbsize())
