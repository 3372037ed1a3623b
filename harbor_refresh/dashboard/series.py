"""The points of a chart, read once for all pages of a process, and again when a new sample may be there."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from time import monotonic

from harbor_refresh.tasks.overview import samples
from harbor_refresh.tasks.overview.samples import Point

#: How long the points of a span are used again.
KEPT_SECONDS = {"hour": 8.0, "day": 60.0}


@dataclass(frozen=True)
class _Read:
    points: Sequence[Point]
    at: float


class Series:
    """What if two requests find it old at once: one of them reads, and the other waits for it."""

    def __init__(self) -> None:
        self._locks = {span: threading.Lock() for span in KEPT_SECONDS}
        self._known: dict[str, _Read] = {}

    def points(self, span: str) -> Sequence[Point]:
        with self._locks[span]:
            known = self._known.get(span)
            if known is None or monotonic() - known.at > KEPT_SECONDS[span]:
                known = self._known[span] = _Read(samples.read(span), monotonic())
            return known.points


@cache
def series() -> Series:
    return Series()
