"""A collector of traces: receives spans over OTLP/HTTP as those of production do, and keeps them as values."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from tests.serving import serving
from tests.waiting import wait_for


@dataclass(frozen=True)
class Received:
    """One span. `links`: the ids of the spans to which it links. `error`: why it is no success."""

    name: str
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]
    error: str
    service: str
    attributes: dict[str, Any] = field(hash=False)


class Collector:
    def __init__(self) -> None:
        self.url = ""
        #: The status with which it answers.
        self.status = 200
        #: How many batches it has refused.
        self.refused = 0
        #: While it is clear, the collector takes connections and answers none.
        self.answers = threading.Event()
        self.answers.set()
        self._spans: list[Received] = []
        self._lock = threading.Lock()

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            _received(span, dict(map(_value, resource.resource.attributes)))
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        with self._lock:
            self._spans += found

    def spans(self, name: str = "", trace: str = "") -> list[Received]:
        with self._lock:
            return [one for one in self._spans if name in ("", one.name) and trace in ("", one.trace)]

    def span(self, name: str, trace: str = "", *, count: int = 1) -> Received:
        """Wait until there are so many of this name, and no more; return the last."""
        wait_for(lambda: len(self.spans(name, trace)) >= count, f"{count} spans {name} of {self.names()}")
        found = self.spans(name, trace)
        assert len(found) == count, found
        return found[-1]

    def names(self, trace: str = "") -> list[str]:
        return sorted(one.name for one in self.spans(trace=trace))

    def parents(self, trace: str) -> dict[str, str]:
        """Return the spans of a trace, each with its parent: the name of it, or the id of one that is not here."""
        found = self.spans(trace=trace)
        assert len({one.name for one in found}) == len(found), self.names(trace)
        by_id = {one.id: one.name for one in found}
        return {one.name: by_id.get(one.parent, one.parent) for one in found}


def _received(span: trace_pb2.Span, resource: dict[str, Any]) -> Received:
    return Received(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        tuple(link.span_id.hex() for link in span.links),
        span.status.message if span.status.code == trace_pb2.Status.STATUS_CODE_ERROR else "",
        resource["service.name"],
        dict(map(_value, span.attributes)),
    )


def _value(pair: KeyValue) -> tuple[str, Any]:
    kind = pair.value.WhichOneof("value")
    return pair.key, getattr(pair.value, kind) if kind else None


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            collector.answers.wait(60)
            if collector.status == 200:
                collector.take(body)
            else:
                collector.refused += 1
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(collector.status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        try:
            yield collector
        finally:
            collector.answers.set()
        server.server_close()
