"""Contexts of spans as text: from the header `traceparent`, and beside the queue in Redis.

The text is that of W3C Trace Context: the value of `traceparent`, and that of `tracestate` after a space if there
is one. What cannot be read is no context. If Redis is away, only the context is lost.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import NonRecordingSpan, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.queue.traces import traces

#: A longer `tracestate` is left out. W3C asks for at least so many characters.
LONGEST_STATE = 512
#: One report of more executions than this is followed to the first of them.
MOST_FOLLOWED = 100

_W3C = TraceContextTextMapPropagator()


def read(parent: str, state: str = "") -> SpanContext | None:
    """Return the context that another program sent."""
    carrier = {"traceparent": parent}
    if state and len(state) <= LONGEST_STATE:
        carrier["tracestate"] = state
    found = get_current_span(_W3C.extract(carrier, Context())).get_span_context()
    return found if found.is_valid else None


def written(context: SpanContext) -> str:
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, around(context))
    state = carrier.get("tracestate", "")
    return carrier["traceparent"] + (f" {state}" if 0 < len(state) <= LONGEST_STATE else "")


def around(context: SpanContext) -> Context:
    """Return the context in which this span is the parent, and nothing else."""
    return set_span_in_context(NonRecordingSpan(context), Context())


class Kept(NamedTuple):
    """The context of the latest report of a member, and the text that it is in Redis."""

    member: str
    report: SpanContext
    text: str


def keep(members: Sequence[str], context: SpanContext) -> None:
    with suppress(QueueUnavailable):
        traces().keep(members[:MOST_FOLLOWED], written(context))


def kept_for(members: Sequence[str]) -> list[Kept]:
    with suppress(QueueUnavailable):
        found = ((member, read(*text.split(" ", 1)), text) for member, text in traces().of(members).items())
        return [Kept(member, report, text) for member, report, text in found if report]
    return []


def drop(kept: Sequence[Kept]) -> None:
    with suppress(QueueUnavailable):
        traces().drop({one.member: one.text for one in kept})


class OfRequests:
    """Take the context that a caller sends with a request, for the spans of this request.

    The request gets no span of its own: its `report` is the entry, so requests that are refused cost nothing, and
    an instrumentation of Django that a project adds doubles nothing.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("traceparent")
        if not given or get_current_span().get_span_context().is_valid:
            return self._get_response(request)
        caller = read(given, request.headers.get("tracestate", ""))
        if caller is None:
            return self._get_response(request)
        token = attach(around(caller))
        try:
            return self._get_response(request)
        finally:
            detach(token)
