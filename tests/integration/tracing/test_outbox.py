"""The outbox when the collector hangs or refuses: reports and refreshes go on, and the log says it once."""

import os
import threading

import pytest

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tracing import outbox as outboxes
from harbor_refresh.tracing import spans
from harbor_refresh.tracing.spans import begun
from harbor_refresh.tracing.tracer import ProcessTracer
from tests.integration.sample_executions import made, status_of
from tests.integration.tracing.collector import Collector
from tests.waiting import wait_for


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        one.getMessage() for one in caplog.records if one.name == "harbor_refresh" and "pans " in one.getMessage()
    ]


def make(count: int) -> None:
    for _ in range(count):
        begun("report").end()


@pytest.mark.usefixtures("database", "redis")
def test_while_the_collector_hangs_reports_and_refreshes_go_on_and_what_does_not_fit_is_dropped(
    traced: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
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
    wait_for(lambda: len(traced.spans()) == 10, "the ten that were kept")
    wait_for(lambda: told(caplog), "the line about the dropped ones")
    # 20 x report and mark, then refresh, write, complete and three merged
    assert told(caplog) == ["Spans are sent again, 36 were dropped"]


def test_a_collector_that_refuses_is_told_once_with_its_reason_and_once_when_it_takes_again(
    traced: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    traced.status = 401
    make(1)
    wait_for(lambda: told(caplog), "the first line")
    make(3)
    wait_for(lambda: outbox()._dropped == 4, "the others to be dropped")
    traced.status = 200
    make(1)
    wait_for(lambda: len(told(caplog)) == 2, "the second line")
    assert told(caplog) == [
        "Spans cannot be sent, they are dropped until the collector answers: 401 Unauthorized",
        "Spans are sent again, 4 were dropped",
    ]
    assert [one.name for one in caplog.records if one.name.startswith("opentelemetry")] == []


def outbox() -> outboxes.Outbox:
    found = spans.of_this_process._outbox
    assert found is not None
    return found


def test_a_process_that_ends_sends_what_is_left_and_does_not_wait_for_a_collector_that_hangs(
    traced: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setattr(outboxes, "END_SECONDS", 60.0)
    make(3)
    assert traced.spans() == []
    spans.of_this_process.end()
    assert traced.names() == ["report"] * 3
    monkeypatch.setattr(outboxes, "END_SECONDS", 0.2)
    other = ProcessTracer()
    traced.answers.clear()
    other.get().start_span("report").end()
    ended = threading.Event()
    threading.Thread(target=lambda: (other.end(), ended.set()), daemon=True).start()
    assert ended.wait(30), "the end waits for the collector"
    assert not traced.answers.is_set()


def test_a_forked_process_sends_its_spans_by_an_outbox_of_its_own(
    traced: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "END_SECONDS", 60.0)
    make(1)
    traced.span("report")
    child = os.fork()
    if child == 0:
        try:
            begun("claim").end()
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
