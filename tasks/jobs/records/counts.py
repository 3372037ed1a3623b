"""Counts: the results of passes over the jobs, added up in one hash with a fixed set of fields.

They are lost with Redis, like all its data: `since` tells since when they count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import cast

from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.records.scripts import COUNTS
from harbor_refresh.tasks.queue.connection import patient, redis_errors_translated, single
from harbor_refresh.tasks.queue.verbs import Verbs


@dataclass(frozen=True)
class Count:
    """The passes of one kind. `last` is when the last one ended, in microseconds; 0 if there was none."""

    passes: int = 0
    last: int = 0
    done: dict[str, int] = field(default_factory=dict)


class Counts(Verbs):
    scripts = COUNTS

    def add(self, kind: str, done: Mapping[str, int]) -> None:
        """Count a pass of this kind. Sent once: a repeated call would count twice."""
        parts = [part for what, count in done.items() if count for part in (what, count)]
        self._run("count", *parts, kind=kind, once=True)

    def all(self) -> tuple[int, dict[str, Count]]:
        """Return since when passes are counted, in microseconds (0 if none were), and the counts by kind."""
        with redis_errors_translated():
            found = cast("dict[bytes, bytes]", self._redis.hgetall(self.keys.counts))
        kinds: dict[str, dict[str, int]] = {}
        for name, count in found.items():
            if count.isdigit():  # else no release of ours has written it
                kind, _, what = name.decode(errors="replace").partition(".")
                kinds.setdefault(kind, {})[what] = int(count)
        since = kinds.pop("since", {}).get("", 0)
        return since, {
            kind: Count(done.pop("passes", 0), done.pop("last", 0), done) for kind, done in kinds.items()
        }


@cache
def counts() -> Counts:
    return Counts(refresh_settings(), patient(), single())
