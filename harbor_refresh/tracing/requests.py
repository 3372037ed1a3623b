"""Take the trace context that a caller sends with a request, for the spans of this request.

The request gets no span of its own: its `report` is the entry, so requests that are refused cost nothing, and an
instrumentation of Django that a project adds doubles nothing.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from opentelemetry import context, trace

from harbor_refresh.tracing import contexts


class TraceContexts:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("traceparent")
        if not given or trace.get_current_span().get_span_context().is_valid:
            return self._get_response(request)
        caller = contexts.read(given, request.headers.get("tracestate", ""))
        if caller is None:
            return self._get_response(request)
        token = context.attach(contexts.around(caller))
        try:
            return self._get_response(request)
        finally:
            context.detach(token)
