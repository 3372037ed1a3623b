"""Retention: which executions are kept, and the pages in which those that are not kept are found."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from harbor_refresh.executions.conf import OTHERS, intake_settings
from harbor_refresh.executions.database import run, sized_pages
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.deletion import referenced

#: Executions that are read at a time.
PAGE = 1_000
#: Executions and tasks that one transaction deletes at most. An execution with more tasks is deleted alone.
BATCH = 500


@dataclass(frozen=True)
class Retention:
    """`counts`: how many of the newest executions to keep of these vendor types, for each vendor id; `others`: of
    each other vendor type, None keeps all. `older_than`: delete executions that ended so long ago, whatever their
    number."""

    counts: Mapping[str, int]
    others: int | None
    older_than: timedelta | None = None

    @classmethod
    def of_settings(cls) -> "Retention":
        conf = intake_settings()
        counts = conf.kept
        age = timedelta(days=conf.retention_days) if conf.retention_days else None
        return cls(counts, counts.pop(OTHERS, None), age)

    @property
    def keeps_everything(self) -> bool:
        return not self.counts and self.others is None and self.older_than is None


class Position(NamedTuple):
    """The last execution that was read, and how many of its vendor type and vendor id were read so far."""

    vendor_type: str = ""
    vendor_id: int = 0
    execution_id: int = 0
    seen: int = 0


@dataclass(frozen=True)
class Page:
    """So many executions were read. Those in `found` are not kept, each with its vendor type and so many tasks.
    Those in `passed` stay nevertheless: a row names them in this column. `next` is None after the last page."""

    looked_at: int
    found: dict[int, tuple[str, int]] = field(default_factory=dict)
    passed: dict[int, str] = field(default_factory=dict)
    next: Position | None = None

    def batches(self) -> Iterator[list[int]]:
        """Split what is found so that each batch has at most BATCH executions and tasks, or is one execution."""
        found = ((pk, tasks) for pk, (_, tasks) in self.found.items() if pk not in self.passed)
        return sized_pages(found, BATCH, count=BATCH)


def find(retention: Retention, after: Position) -> Page:
    """Read the next page. The position moves on over executions that stay, so these never fill a page for ever."""
    rows = run(
        "find_sweepable",
        after_vendor=after.vendor_type,
        after_vendor_id=after.vendor_id,
        after_id=after.execution_id,
        seen=after.seen,
        page=PAGE,
        named=list(retention.counts),
        counts=list(retention.counts.values()),
        others=retention.others,
        older_than=retention.older_than,
    )
    found = {pk: (vendor_type, tasks) for vendor_type, _, pk, _, tasks in rows if tasks is not None}
    kept = links.with_unfinished_ancestor(found)  # a retry of the ancestor runs its failed jobs again
    found = {pk: its for pk, its in found.items() if pk not in kept}
    last = Position(*rows[-1][:4]) if len(rows) == PAGE else None
    return Page(len(rows), dict(sorted(found.items())), referenced(list(found)), last)


def count(
    retention: Retention, progress: Callable[[int], None] = lambda _: None
) -> tuple[dict[str, dict[str, int]], Counter[str]]:
    """Count what a sweep would delete now, the executions and tasks of each vendor type; and how many executions
    stay because rows in a column name them. Writes nothing."""
    counted: dict[str, dict[str, int]] = {}
    passed = Counter[str]()
    position = None if retention.keeps_everything else Position()
    looked_at = 0
    while position:
        page = find(retention, position)
        for pk, (vendor_type, tasks) in page.found.items():
            one = counted.setdefault(vendor_type, {"executions": 0, "tasks": 0})
            if column := page.passed.get(pk):
                passed[column] += 1
            else:
                one["executions"] += 1
                one["tasks"] += tasks
        looked_at += page.looked_at
        progress(looked_at)
        position = page.next
    return dict(sorted(counted.items())), passed
