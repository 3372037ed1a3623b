"""The spans of each step. A function here is a generator: it begins the spans from the facts of the step, yields
once, gets the notes and the exception of the step, and ends the spans.

A chunk has many executions, and so reports of many traces. Each execution with a sampled report has a `refresh` in
the trace of its last report, with a link to the chunk. A claim of one execution with a sampled report needs no
`refresh chunk`.

If the process dies, its open spans are lost, and the contexts stay in Redis: the attempt that succeeds is in the
same trace. If two claims hold the execution at once, each of them is an attempt.
"""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from time import time_ns
from types import TracebackType
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.executions.news import steps
from harbor_refresh.logs import context as log_context
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.claim import Batch, Claim
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tracing import contexts
from harbor_refresh.tracing.tracer import of_this_process

log = logging.getLogger("harbor_refresh")

LONGEST_ERROR = 300
#: The SDK keeps so many links of a span.
MOST_LINKS = 128

Spans = Generator[None, tuple[Mapping[str, Any], BaseException | None], None]


def begun(
    name: str,
    attributes: Mapping[str, Any],
    *,
    parent: Context | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    links: Sequence[Link] = (),
    at: int | None = None,
) -> Span:
    """Begin a span, below the current one unless `parent` is given."""
    tracer = of_this_process.get()
    return tracer.start_span(name, parent, kind, _named(attributes), links=links, start_time=at)


def _named(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {f"harbor_refresh.{name}": value for name, value in attributes.items()}


def _end(span: Span, why: str = "", attributes: Mapping[str, Any] | None = None) -> None:
    """End the span. `why` is the reason of a failure."""
    span.set_attributes(_named(attributes or {}))
    if why:
        span.set_status(Status(StatusCode.ERROR, why[:LONGEST_ERROR]))
    span.end()


def _kind(error: BaseException | None) -> str:
    """Return what a span may say of an error: its kind alone, because its text may quote what was reported."""
    return type(error).__name__ if error else ""


@contextmanager
def _current(span: Span) -> Iterator[None]:
    """Make this span the current one. The log lines that are written inside have the id of its trace."""
    recorded = span.is_recording()
    bound = log_context.bound(trace=f"{span.get_span_context().trace_id:032x}") if recorded else nullcontext()
    with trace.use_span(span, record_exception=False, set_status_on_exception=False), bound:
        yield


def _about(execution_ids: Sequence[int]) -> dict[str, Any]:
    """Return how many executions there are, and the id of a single one."""
    found = {"executions": len(execution_ids)}
    return found | {"execution.id": execution_ids[0]} if len(execution_ids) == 1 else found


def _of_member(member: str) -> dict[str, Any]:
    return {
        "execution.id": names.execution_id(member),
        "execution.vendor_type": names.vendor_type(member),
        "node": this_node.name,
    }


def _report(source: str) -> Spans:
    """The entry of the service if a caller has sent its context; else a part of the current span."""
    is_entry = trace.get_current_span().get_span_context().is_remote
    attributes = {"source": str(source)}
    if request := log_context.ids().get("request"):
        attributes["request"] = request
    span = begun("report", attributes, kind=SpanKind.SERVER if is_entry else SpanKind.INTERNAL)
    with _current(span):
        notes, error = yield
    counts = {f"reports.{name}": notes.get(name, 0) for name in ("applied", "unchanged", "refused")}
    _end(span, _kind(error), counts | _about(notes.get("executions", ())))


def _mark(members: Sequence[str]) -> Spans:
    """Keep the context of the report beside its executions, before they are marked: a refresh may read it at any
    moment after. A mark without a sampled report has no span."""
    report = trace.get_current_span().get_span_context()
    if not (report.is_valid and report.trace_flags.sampled):
        return
    span = begun("mark", _about(names.ids(members)), kind=SpanKind.PRODUCER)
    contexts.keep(members, report)
    with _current(span):
        _, error = yield
    _end(span, _kind(error))


def _claim(batch: Batch, chunks: Sequence[Claim]) -> Spans:
    """Read the contexts before the chunks are published: a fast worker may refresh them, and drop the contexts,
    before this process continues."""
    began = time_ns()
    kept = contexts.kept_for([member for chunk in chunks for member in chunk.members])
    _, error = yield
    for one in kept:
        attributes = {
            **_of_member(one.member),
            "executions": len(batch.claim),
            "backlog": batch.backlog,
            "failed_before": batch.attempts.get(one.member, 0),
        }
        _end(begun("claim", attributes, parent=contexts.around(one.report), at=began), _kind(error))


def _refresh(claim: Claim, mine: Claim) -> Spans:
    began = time_ns()
    kept = contexts.kept_for(mine.members)
    chunk = None
    if len(mine) > 1 or not kept:
        attributes = {"executions": len(mine), "node": this_node.name}
        links = [Link(one.report) for one in kept[:MOST_LINKS]]
        chunk = begun("refresh chunk", attributes, kind=SpanKind.CONSUMER, links=links)
    to_chunk = [Link(chunk.get_span_context())] if chunk and chunk.is_recording() else []
    attempts = []
    for one in kept:
        attributes = {
            **_of_member(one.member),
            "executions": len(mine),
            "in_broker_seconds": max(0, int(mine.stamp) - int(claim.stamp)) / 1_000_000,
        }
        parent = contexts.around(one.report)
        attempts.append(
            begun("refresh", attributes, parent=parent, kind=SpanKind.CONSUMER, links=to_chunk, at=began)
        )
    with _current(chunk or attempts[0]):
        notes, error = yield
    outcome: Refreshed | None = notes.get("outcome")
    done = []
    for span, one in zip(attempts, kept, strict=True):
        execution_id, result, why = names.execution_id(one.member), "refreshed", ""
        if outcome is None:
            result, why = "failed", _kind(error) or "?"
        elif execution_id in outcome.failed:
            result, why = "failed", outcome.failed[execution_id]
        elif execution_id in outcome.locked:
            result, why = "locked", "another transaction has locked the row"
        _end(span, why, {"result": result})
        if not why and error is None:
            done.append(one)
    if chunk:
        _end(chunk, _kind(error), {"changed": outcome.changed if outcome else 0})
    contexts.drop(done)


def _refresh_at_once(execution_ids: Sequence[int]) -> Spans:
    """The refresh in the process that reports: there is no queue, or a report has stopped a task."""
    span = begun("refresh", _about(execution_ids))
    with _current(span):
        notes, error = yield
    outcome: Refreshed = notes.get("outcome") or Refreshed()
    why = _kind(error) or next(iter(outcome.failed.values()), "")
    _end(span, why, {"result": "failed" if why else "refreshed"})


def _write(execution_ids: Sequence[int]) -> Spans:
    """A write has a span if something around it is traced: its refresh, or a request."""
    if not trace.get_current_span().is_recording():
        return
    span = begun("write", {"executions": len(execution_ids)})
    with _current(span):
        notes, error = yield
    _end(span, _kind(error), {"changed": notes.get("changed", 0)})


def _complete(claim: Claim) -> Spans:
    span = begun("complete", {"executions": len(claim)})
    with _current(span):
        notes, error = yield
    _end(span, _kind(error), {"claim_expired": notes.get("claim_expired", 0)})


OF_STEP: Mapping[str, Callable[..., Spans]] = {
    "report": _report,
    "mark": _mark,
    "claim": _claim,
    "refresh": _refresh,
    "refresh_at_once": _refresh_at_once,
    "write": _write,
    "complete": _complete,
}


class FollowedStep:
    """The follower of the steps. Trouble of its own never fails a step."""

    def __init__(self, name: str, facts: Mapping[str, Any]) -> None:
        self._spans = OF_STEP[name](**facts)
        self._notes: dict[str, Any] = {}

    def __enter__(self) -> steps.Note:
        with _no_trouble():
            next(self._spans)
        return self._notes.update

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _no_trouble():
            self._spans.send((self._notes, error))


_is_logged = False


@contextmanager
def _no_trouble() -> Iterator[None]:
    """Log the first error of this process; the same fault would come with each report."""
    global _is_logged  # noqa: PLW0603
    try:
        yield
    except StopIteration:  # the step has no spans, or they have ended
        pass
    except Exception:
        if not _is_logged:
            _is_logged = True
            log.error("A step could not be traced; the next ones are tried", exc_info=True)


def connect() -> None:
    steps.follow_with(FollowedStep)
