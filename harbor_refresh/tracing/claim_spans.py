"""The spans `claim`: one in the trace of each sampled report whose execution a tick has claimed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import time_ns
from typing import Any

from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.claim import Batch, Claim
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.queue.traces import Kept
from harbor_refresh.tracing import catalogue, contexts
from harbor_refresh.tracing.spans import begun, fail, reason


@dataclass(frozen=True)
class ClaimSpans:
    batch: Batch
    kept: Mapping[str, Kept]
    began: int

    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None:
        for member, kept in self.kept.items():
            self._write(member, kept, error)

    def _write(self, member: str, kept: Kept, error: BaseException | None) -> None:
        reports = contexts.of_reports(kept)
        if not reports:
            return
        stamp, report = reports[-1]
        attributes = {
            catalogue.EXECUTION: names.execution_id(member),
            catalogue.VENDOR: names.vendor_type(member),
            catalogue.EXECUTIONS: len(self.batch.claim),
            catalogue.BACKLOG: self.batch.backlog,
            catalogue.FAILED_BEFORE: self.batch.attempts.get(member, 0),
            catalogue.WAITED: seconds_between(stamp, self.batch.claim.stamp),
            catalogue.NODE: this_node.name,
        }
        span = begun("claim", attributes, parent=contexts.around(report), at=self.began)
        if error:
            fail(span, reason(error))
        span.end()


def begin(batch: Batch, chunks: Sequence[Claim]) -> ClaimSpans | None:
    """Read the contexts before the chunks are published: a fast worker may refresh them, and drop the contexts,
    before this process goes on."""
    published = [member for chunk in chunks for member in chunk.members]
    kept = contexts.kept_for(published)
    return ClaimSpans(batch, kept, time_ns()) if kept else None


def seconds_between(before: int | str, after: int | str) -> float:
    """Return the seconds between two moments of Redis's clock (us)."""
    return max(0, int(after) - int(before)) / 1_000_000
