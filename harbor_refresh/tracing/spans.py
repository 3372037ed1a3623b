"""What the spans of all steps share: to be current, to end with an error, and to be bound to log lines."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from harbor_refresh.logs.context import bound
from harbor_refresh.tracing.tracer import of_this_process

LONGEST_ERROR = 300


def begun(
    name: str,
    attributes: Mapping[str, Any] | None = None,
    *,
    parent: Context | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    links: Sequence[Link] = (),
    at: int | None = None,
) -> Span:
    """Begin a span, below the current one unless `parent` is given."""
    return of_this_process.get().start_span(
        name, parent, kind, dict(attributes or {}), links=links, start_time=at, record_exception=False
    )


def current() -> trace.SpanContext | None:
    """Return the context of the current span, if its trace is sampled."""
    found = trace.get_current_span().get_span_context()
    return found if found.is_valid and found.trace_flags.sampled else None


def fail(span: Span, why: str) -> None:
    span.set_status(Status(StatusCode.ERROR, why[:LONGEST_ERROR]))


def reason(error: BaseException) -> str:
    """Return what a span may say of an error: its kind alone, because its text may quote what was reported."""
    return type(error).__name__


class CurrentSpan:
    """A span that is the current one until it ends. The log lines written meanwhile have the id of its trace."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._until_end = ExitStack()
        self._until_end.enter_context(trace.use_span(span, record_exception=False, set_status_on_exception=False))
        if span.is_recording():
            self._until_end.enter_context(bound(trace=f"{span.get_span_context().trace_id:032x}"))

    def leave(self) -> None:
        """The span before it is the current one again."""
        self._until_end.close()

    def end(self, notes: Mapping[str, Any], error: BaseException | None) -> None:
        self.leave()
        if error:
            fail(self.span, reason(error))
        self.span.end()
