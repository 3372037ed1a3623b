"""Trace contexts of reports, kept beside the queue until a refresh has included the reports.

A member of the queue cannot carry a context, because to mark it twice must change nothing. So a hash holds the
contexts of the sampled reports. It is used only while traces are on (harbor_refresh/tracing). It may be lost: then
a trace ends at its report. So its client gives up soon and never tries again.

A context is kept before its execution is marked, and after the commit of its report. So every context that a
refresh reads before its statement belongs to a report that the statement sees. The refresh drops what it has read
when it has succeeded. If its process dies before, the contexts stay, and the next refresh finds them, so the
second attempt is in the same trace.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue.connection import brief, redis_errors_translated
from harbor_refresh.tasks.queue.scripts import Verbs
from harbor_refresh.tasks.queue.sets import pages

#: With more members than this, it is asked first whether there is any context at all.
FEW = 100


@dataclass(frozen=True)
class Kept:
    """The contexts of one member, the latest last, each with the moment of its report by Redis's clock (us)."""

    member: str
    lines: str

    @property
    def contexts(self) -> list[tuple[int, str]]:
        """Leave out what cannot be read."""
        parts = (line.partition(" ") for line in self.lines.split("\n"))
        return [(int(stamp), text) for stamp, _, text in parts if stamp.isascii() and stamp.isdecimal()]


class Traces(Verbs):
    def keep(self, members: Sequence[str], context: str) -> int:
        """Keep the context beside these members. Return how many had room for it."""
        return int(self._run("keep_context", *members, context=context)) if members else 0

    def of(self, members: Sequence[str]) -> dict[str, Kept]:
        """Return what is kept for these members, the few that have something."""
        found: dict[str, Kept] = {}
        with redis_errors_translated():
            if len(members) > FEW and not self._redis.exists(self.keys.traces):
                return found
            for page in pages(members):
                values = cast("list[bytes | None]", self._redis.hmget(self.keys.traces, page))
                for member, raw in zip(page, values, strict=True):
                    if raw is not None:
                        found[member] = Kept(member, raw.decode(errors="replace"))
        return found

    def drop(self, kept: Iterable[Kept]) -> None:
        for page in pages(kept):
            self._run("drop_contexts", *(text for one in page for text in (one.member, one.lines)))


@cache
def traces() -> Traces:
    client = brief()
    return Traces(refresh_settings(), client, client)
