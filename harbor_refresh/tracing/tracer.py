"""The tracer of this process, configured by the standard variables OTEL_*.

It is made on first use, so a forked child has a sender of its own: threads and connections do not survive a fork.
It is not the global tracer, so it changes nothing for code that has set one. The batch processor of the SDK sends
the spans in a thread of its own, so no caller waits for the collector.
"""

import atexit
import logging
import os
import threading
from typing import Any

from celery import signals
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NoOpTracer, Tracer

log = logging.getLogger("harbor_refresh")

NAME = "harbor_refresh"
#: The name of the service, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES gives one.
SERVICE = "harbor-refresh"
#: How long a process that ends waits for its last spans: a collector that hangs must not hold up a restart.
END_SECONDS = 2.0


class ProcessTracer:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._tracer: Tracer = NoOpTracer()
        self._ending = threading.Event()
        self._closer: threading.Thread | None = None

    def get(self) -> Tracer:
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._begin()
        return self._tracer

    def _begin(self) -> None:
        """Make the tracer. If a variable OTEL_* is wrong, this process traces nothing, and says so once."""
        self._tracer, self._ending, self._closer = NoOpTracer(), threading.Event(), None
        try:
            provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            self._tracer = provider.get_tracer(NAME)
            # started now, because a process that ends can start no thread
            self._closer = threading.Thread(target=_close, args=(provider, self._ending), daemon=True)
            self._closer.start()
        except Exception as exc:
            log.warning("Traces are off in this process: %s", exc)
        self._pid = os.getpid()

    def end(self, **_: Any) -> None:
        """Send what is left, and make no more spans. A process that has made none does nothing."""
        if self._pid == os.getpid() and self._closer:
            closer, self._closer, self._tracer = self._closer, None, NoOpTracer()
            self._ending.set()
            closer.join(END_SECONDS)


def _close(provider: TracerProvider, ending: threading.Event) -> None:
    ending.wait()
    provider.shutdown()


def _resource() -> Resource:
    given = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return Resource.create({} if given else {SERVICE_NAME: SERVICE})


of_this_process = ProcessTracer()


def connect() -> None:
    """Send the last spans when a process ends. A pool's process ends without `atexit`."""
    atexit.register(of_this_process.end)
    for ending in (signals.worker_process_shutdown, signals.worker_shutdown):
        ending.connect(of_this_process.end, dispatch_uid="traces.end")
