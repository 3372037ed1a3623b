"""The tracer of this process, configured by the standard variables OTEL_*.

It is made on first use, so a forked child has an outbox of its own: threads and connections do not survive a fork.
It is not the global tracer, so it changes nothing for code that has set one.
"""

import atexit
import logging
import os
import threading
from typing import Any

from celery import signals
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracer, Tracer

from harbor_refresh.tracing.outbox import Outbox

log = logging.getLogger("harbor_refresh")

NAME = "harbor_refresh"
#: The name of the service, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES gives one.
SERVICE = "harbor-refresh"


class ProcessTracer:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._tracer: Tracer = NoOpTracer()
        self._outbox: Outbox | None = None

    def get(self) -> Tracer:
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._begin()
        return self._tracer

    def _begin(self) -> None:
        """Make the tracer. If a variable OTEL_* is wrong, this process traces nothing, and says so once."""
        self._tracer, self._outbox = NoOpTracer(), None
        try:
            provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
            outbox = Outbox()
            provider.add_span_processor(outbox)
            self._tracer, self._outbox = provider.get_tracer(NAME), outbox
        except Exception as exc:
            log.warning("Traces are off in this process: %s", exc)
        self._pid = os.getpid()

    def end(self, **_: Any) -> None:
        """Send what is left, and make no more spans. A process that has made none does nothing."""
        if self._pid == os.getpid() and self._outbox:
            outbox, self._outbox, self._tracer = self._outbox, None, NoOpTracer()
            outbox.end()


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
