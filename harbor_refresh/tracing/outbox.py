"""The outbox: ended spans wait in it, and a thread of its own sends them. No caller ever waits for the collector.

It is the batch processor of the SDK with the standard exporter, and adds what these lack: a span that does not fit
is counted, trouble is logged once and not for each batch, and the end of a process waits for a bounded time.
"""

import logging
import os
import threading
from collections.abc import Sequence
from time import monotonic

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

log = logging.getLogger("harbor_refresh")

#: The SDK's default for OTEL_BSP_MAX_QUEUE_SIZE.
MOST_SPANS = 2_048
#: So long a process that ends waits for its last spans.
END_SECONDS = 2.0
#: Drops of a collector that answers, but too slowly, are told no more often than this.
QUIET_SECONDS = 60.0
LONGEST_REASON = 300
OF_EXPORTER = logging.getLogger(OTLPSpanExporter.__module__)


class Reason(logging.Filter):
    """Keep the exporter's last complaint, and keep it out of the log: there are several for each batch."""

    text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        args = record.args if isinstance(record.args, tuple) else ()
        told = " ".join(str(one) for one in args if one not in (None, "spans") and not isinstance(one, float))
        self.text = (told or self.text or record.getMessage())[:LONGEST_REASON]
        return False


reason = Reason()


def _most_spans() -> int:
    try:
        return int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or MOST_SPANS)
    except ValueError:  # the SDK says so, and takes its default
        return MOST_SPANS


class Outbox(BatchSpanProcessor):
    """Spans that have ended and are not sent: at most OTEL_BSP_MAX_QUEUE_SIZE, the batch on its way included."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        self._room = threading.Lock()
        self._held = 0
        self._dropped = 0
        self._is_failing = False
        self._most = _most_spans()
        OF_EXPORTER.addFilter(reason)
        self._told = -QUIET_SECONDS
        super().__init__(Watched(exporter or OTLPSpanExporter(), self))
        self._is_ending = threading.Event()
        # begun now, because a process that ends can start no thread
        self._closer = threading.Thread(target=self._close, name="traces", daemon=True)
        self._closer.start()

    def on_end(self, span: ReadableSpan) -> None:
        if not (span.context and span.context.trace_flags.sampled):
            return
        with self._room:
            if self._held >= self._most:
                self._dropped += 1
                return
            self._held += 1
        super().on_end(span)

    def sent(self, count: int, *, is_sent: bool) -> None:
        """Note that a batch has left the outbox. The log tells when sending begins to fail, and when it works
        again."""
        now = monotonic()
        with self._room:
            self._held -= count
            if not is_sent:
                self._dropped += count
            dropped, was_failing = self._dropped, self._is_failing
            self._is_failing = not is_sent
            is_news = is_sent and dropped and (was_failing or now - self._told > QUIET_SECONDS)
            if is_news:
                self._told, self._dropped = now, 0
        if is_news:
            log.warning("Spans are sent again, %d were dropped", dropped)
        elif not is_sent and not was_failing:
            log.warning("Spans cannot be sent, they are dropped until the collector answers: %s", reason.text)

    def end(self) -> None:
        """Send what is left, for END_SECONDS at most: a collector that hangs must not hold up a restart."""
        self._is_ending.set()
        self._closer.join(END_SECONDS)

    def _close(self) -> None:
        self._is_ending.wait()
        self.shutdown()  # type: ignore[no-untyped-call]


class Watched(SpanExporter):
    """The exporter, which tells the outbox how each batch went."""

    def __init__(self, exporter: SpanExporter, outbox: Outbox) -> None:
        self._exporter = exporter
        self._outbox = outbox

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result, reason.text = SpanExportResult.FAILURE, ""
        try:
            result = self._exporter.export(spans)
        finally:
            self._outbox.sent(len(spans), is_sent=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
