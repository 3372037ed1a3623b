"""The context that a caller sends with a request: taken if it can be read, and only for that request."""

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from opentelemetry import context, trace
from opentelemetry.trace import SpanContext

from harbor_refresh.tracing import contexts

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = f"00-{TRACE}-{SPAN}-01"


def seen(**headers: str) -> SpanContext:
    """Return the current context inside a request with these headers."""
    found: list[SpanContext] = []

    def view(_: HttpRequest) -> HttpResponse:
        found.append(trace.get_current_span().get_span_context())
        return HttpResponse()

    contexts.OfRequests(view)(RequestFactory().post("/", headers=headers))
    (one,) = found
    return one


def test_the_context_of_the_caller_is_current_during_its_request_and_not_after() -> None:
    one = seen(traceparent=SAMPLED, tracestate="vendor=7")
    assert (f"{one.trace_id:032x}", f"{one.span_id:016x}", one.is_remote) == (TRACE, SPAN, True)
    assert (one.trace_flags.sampled, one.trace_state.to_header()) == (True, "vendor=7")
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        SAMPLED[:-1],
        SAMPLED.replace("00-", "ff-"),
        f"00-{'0' * 32}-{SPAN}-01",
        "x" * 10_000,
        "00-\xe9-1-01",
    ],
)
def test_a_header_that_cannot_be_read_is_none(header: str) -> None:
    assert not seen(traceparent=header).is_valid


def test_a_span_that_a_project_has_begun_for_the_request_stays_the_current_one() -> None:
    project = contexts.read(f"00-{TRACE}-{'1' * 16}-01")
    assert project is not None
    token = context.attach(contexts.around(project))
    try:
        assert seen(traceparent=SAMPLED) == project
    finally:
        context.detach(token)


def test_a_context_comes_back_from_its_text_and_a_long_state_is_left_out() -> None:
    for state in ("", "vendor=7,other=8"):
        one = contexts.read(SAMPLED, state)
        assert one is not None
        assert contexts.written(one) == f"{SAMPLED} {state}".strip()
        assert contexts.read(*contexts.written(one).split(" ", 1)) == one
    long = contexts.read(SAMPLED, "vendor=" + "7" * 600)
    assert long is not None
    assert contexts.written(long) == SAMPLED
