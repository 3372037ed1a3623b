"""A collector, and this process as one with traces on."""

from collections.abc import Iterator

import pytest

from harbor_refresh.executions.news import steps
from harbor_refresh.tracing import spans
from harbor_refresh.tracing.tracer import ProcessTracer
from tests.integration.tracing.collector import Collector, collecting


def variables(collector: Collector) -> dict[str, str]:
    """The environment of a process with traces on. It sends its spans soon."""
    return {
        "REFRESH_TRACES": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "60",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as started:
        yield started


@pytest.fixture
def traced(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """The steps of this process are followed, by a tracer of its own."""
    for name, value in variables(collector).items():
        monkeypatch.setenv(name, value)
    tracer = ProcessTracer()
    monkeypatch.setattr(spans, "of_this_process", tracer)
    monkeypatch.setattr(spans, "_is_logged", False)
    spans.connect()
    yield collector
    steps.follow_with(None)
    collector.answers.set()
    tracer.end()
    assert not spans._is_logged, "a step could not be traced"
