"""A thread of the SDK sends the spans: no report, no refresh and no process that ends waits for the collector."""

import os
import threading

import pytest

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tracing import spans, tracer
from harbor_refresh.tracing.spans import begun
from harbor_refresh.tracing.tracer import ProcessTracer
from tests.integration.sample_executions import made, status_of
from tests.integration.tracing.collector import Collector
from tests.waiting import wait_for


def make(count: int) -> None:
    for _ in range(count):
        begun("report", {}).end()


@pytest.mark.usefixtures("database", "redis")
def test_while_the_collector_hangs_reports_and_refreshes_continue_and_the_oldest_spans_are_dropped(
    traced: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector answers only after all is done, so nothing here can have waited for it."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    traced.answers.clear()
    execution, tasks = made(20)
    for task in tasks:
        report([Report(task, "Success")])
    refresh_claim(execution_queue().claim("me", 10).claim)
    assert status_of(execution) == "Success"
    assert traced.spans() == []
    traced.answers.set()
    # the last span ends last; before it, at most the queue and the batches that were on their way
    wait_for(lambda: traced.spans("refresh"), "the last spans")
    assert len(traced.spans()) <= 20


def test_a_collector_that_refuses_gets_the_spans_that_end_after_it_takes_them_again(traced: Collector) -> None:
    traced.status = 401
    make(1)
    wait_for(lambda: traced.refused, "the first batch to be refused")
    traced.status = 200
    make(1)
    traced.span("report")


def test_a_process_that_ends_sends_what_is_left_and_does_not_wait_for_a_collector_that_hangs(
    traced: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setattr(tracer, "END_SECONDS", 60.0)
    make(3)
    assert traced.spans() == []
    spans.of_this_process.end()
    assert traced.names() == ["report"] * 3
    monkeypatch.setattr(tracer, "END_SECONDS", 0.2)
    other = ProcessTracer()
    traced.answers.clear()
    other.get().start_span("report").end()
    ended = threading.Event()
    threading.Thread(target=lambda: (other.end(), ended.set()), daemon=True).start()
    assert ended.wait(30), "the end waits for the collector"
    assert not traced.answers.is_set()


def test_a_forked_process_sends_its_spans_by_itself(traced: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "END_SECONDS", 60.0)
    make(1)
    traced.span("report")
    child = os.fork()
    if child == 0:
        try:
            begun("claim", {}).end()
            spans.of_this_process.end()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    traced.span("claim")
    make(1)
    traced.span("report", count=2)


@pytest.mark.parametrize(("name", "value"), [("OTEL_BSP_SCHEDULE_DELAY", "0"), ("OTEL_BSP_MAX_QUEUE_SIZE", "7")])
def test_a_wrong_variable_of_opentelemetry_turns_traces_off_and_is_told_once(
    name: str, value: str, traced: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(name, value)
    make(2)
    lines = [one.getMessage() for one in caplog.records]
    assert len(lines) == 1
    assert lines[0].startswith("Traces are off in this process: ")
