"""The spans of a refresh: `refresh` in the trace of each sampled report, `refresh chunk` in a trace of its own.

A chunk has many executions, and so reports of many traces. Each execution with a sampled report has a `refresh` in
the trace of its last report, with links to its earlier reports and to the chunk. In the traces of the earlier
reports `merged` links to it. A chunk of one execution with a sampled report needs no span of the chunk.

What if the process dies: its open spans are lost, and the contexts stay in Redis. The attempt that succeeds is in
the same trace. What if two claims hold the execution at once: each of them is an attempt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import time_ns
from typing import Any

from opentelemetry.trace import Link, Span, SpanContext, SpanKind

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.queue.traces import Kept
from harbor_refresh.tracing import catalogue, contexts
from harbor_refresh.tracing.claim_spans import seconds_between
from harbor_refresh.tracing.progress import Progress, of_this_refresh
from harbor_refresh.tracing.report_spans import about
from harbor_refresh.tracing.spans import CurrentSpan, begun, fail, reason

#: The SDK keeps so many links of a span.
MOST_LINKS = 128


@dataclass(frozen=True)
class Attempt:
    """The span of one execution, and what was kept for it."""

    execution_id: int
    kept: Kept
    span: Span
    earlier: Sequence[Link]
    began: int

    def end(self, progress: Progress, result: str, why: str) -> None:
        self.span.set_attribute(catalogue.RESULT, result)
        if change := progress.changes.get(self.execution_id):
            self.span.set_attributes(change.attributes)
        if why:
            fail(self.span, why)
        inside = contexts.around(self.span.get_span_context())
        for began, ended, completed, outlived in progress.completions:
            if self.execution_id in completed:
                begun("complete", {catalogue.OUTLIVED: outlived}, parent=inside, at=began).end(ended)
        self.span.end()
        if result in ("changed", "unchanged"):
            self._end_earlier()

    def _end_earlier(self) -> None:
        for link in self.earlier:
            here = Link(self.span.get_span_context())
            begun("merged", parent=contexts.around(link.context), links=[here], at=self.began).end()


class RefreshSpans:
    """The spans of one claim. The current one is that of the chunk, or of its only execution."""

    def __init__(self, claim: Claim, mine: Claim) -> None:
        began = time_ns()
        in_broker = seconds_between(claim.stamp, mine.stamp)
        found = ((one, contexts.of_reports(one)) for one in contexts.kept_for(mine.members).values())
        kept = [(one, [context for _, context in reports]) for one, reports in found if reports]
        self._chunk: Span | None = None
        if len(mine) > 1 or not kept:
            attributes = {catalogue.EXECUTIONS: len(mine), catalogue.NODE: this_node.name}
            links = [Link(reports[-1]) for _, reports in kept[:MOST_LINKS]]
            self._chunk = begun("refresh chunk", attributes, kind=SpanKind.CONSUMER, links=links)
        self._attempts = [self._attempt(one, reports, len(mine), in_broker, began) for one, reports in kept]
        self._current = CurrentSpan(self._chunk or self._attempts[0].span)
        self.progress = Progress(sorted(one.execution_id for one in self._attempts))
        self._token = of_this_refresh.set(self.progress)

    def _attempt(
        self, kept: Kept, reports: Sequence[SpanContext], executions: int, in_broker: float, began: int
    ) -> Attempt:
        execution_id = names.execution_id(kept.member)
        attributes = {
            catalogue.EXECUTION: execution_id,
            catalogue.VENDOR: names.vendor_type(kept.member),
            catalogue.EXECUTIONS: executions,
            catalogue.REPORTS: len(reports),
            catalogue.IN_BROKER: in_broker,
            catalogue.NODE: this_node.name,
        }
        earlier = [Link(report) for report in reports[:-1]]
        links = list(earlier)
        if self._chunk and self._chunk.is_recording():
            links.append(Link(self._chunk.get_span_context()))
        parent = contexts.around(reports[-1])
        span = begun("refresh", attributes, parent=parent, kind=SpanKind.CONSUMER, links=links, at=began)
        return Attempt(execution_id, kept, span, earlier, began)

    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None:
        of_this_refresh.reset(self._token)
        outcome: Refreshed | None = notes.get("outcome")
        results = {one.execution_id: self._result(one.execution_id, outcome, error) for one in self._attempts}
        for one in self._attempts:
            one.end(self.progress, *results[one.execution_id])
        if self._chunk is None:
            self._current.leave()
        else:
            self._chunk.set_attribute(catalogue.CHANGED, outcome.changed if outcome else 0)
            self._current.end(notes, error)
        if done := [one.kept for one in self._attempts if not error and not results[one.execution_id][1]]:
            contexts.drop(done)

    def _result(
        self, execution_id: int, outcome: Refreshed | None, error: BaseException | None
    ) -> tuple[str, str]:
        """Return the result and why it is no success."""
        if outcome is None:
            return "failed", reason(error) if error else "?"
        if execution_id in outcome.failed:
            return "failed", outcome.failed[execution_id]
        if execution_id in outcome.locked:
            return "locked", "another transaction has locked the row"
        return ("changed" if execution_id in self.progress.changes else "unchanged"), ""


def begin(claim: Claim, mine: Claim) -> RefreshSpans:
    return RefreshSpans(claim, mine)


class AtOnceSpan(CurrentSpan):
    """The refresh in the process that reports: there is no queue, or a report has stopped a task."""

    def __init__(self, execution_ids: Sequence[int]) -> None:
        super().__init__(begun("refresh", about(execution_ids)))
        is_followed = self.span.is_recording()
        self.progress = Progress(sorted(execution_ids)[: contexts.MOST_FOLLOWED] if is_followed else ())
        self._token = of_this_refresh.set(self.progress)

    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None:
        of_this_refresh.reset(self._token)
        outcome: Refreshed | None = notes.get("outcome")
        if outcome and outcome.failed:
            fail(self.span, next(iter(outcome.failed.values())))
        is_changed = outcome is not None and outcome.changed
        is_failed = error is not None or (outcome is not None and outcome.failed)
        self.span.set_attribute(
            catalogue.RESULT, "failed" if is_failed else "changed" if is_changed else "unchanged"
        )
        if len(self.progress.followed) == 1:
            for change in self.progress.changes.values():
                self.span.set_attributes(change.attributes)
        super().end(notes, error)


def begin_at_once(execution_ids: Sequence[int]) -> AtOnceSpan:
    return AtOnceSpan(execution_ids)
