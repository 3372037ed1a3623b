"""The spans of each step in one process: whose children they are, to which they link, and what they say."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from typing import Any

import pytest
from django.db import connection, transaction
from opentelemetry import context
from pytest_django import Settings

from harbor_refresh.executions import crash_points
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from harbor_refresh.logs.context import ids as bound_ids
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.tracing import contexts, spans
from tests.faults.conftest import many
from tests.integration.pipeline.pipeline_state import cursed, member
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import made, status_of
from tests.integration.tracing.collector import Collector, Received

pytestmark = pytest.mark.usefixtures("database", "redis", "no_checks")

RESULT = "harbor_refresh.result"


@pytest.fixture
def no_checks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """No tick is sent and nothing rests, so only the test claims."""
    monkeypatch.setattr(pacing, "LONGEST_REST_SECONDS", 0)
    execution_queue.cache_clear()
    monkeypatch.setattr(wakeup, "send_tick", lambda: None)
    monkeypatch.setattr(wakeup, "check_later", lambda *_, **__: None)
    yield
    execution_queue.cache_clear()


def refreshed() -> None:
    """Claim what waits and refresh it, each chunk as it comes from the broker."""
    claims: list[Claim] = []
    dispatch(claims.extend, 0)
    for claim in claims:
        refresh_claim(Claim.from_message(claim.to_message()))


@contextmanager
def unsampled() -> Iterator[None]:
    """Below a caller that does not sample."""
    caller = contexts.read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
    assert caller is not None
    token = context.attach(contexts.around(caller))
    yield
    context.detach(token)


def kept(redis: Redis) -> dict[str, str]:
    found: dict[str, str] = whole_redis(redis).get("traces", {})
    return found


def linked(span: Received, *others: Received) -> bool:
    return sorted(span.links) == sorted(one.id for one in others)


def test_of_two_reports_of_one_refresh_the_last_has_it_as_a_child_and_the_trace_of_the_first_ends_at_its_mark(
    traced: Collector, redis: Redis
) -> None:
    _, (task,) = made(1)
    report([Report(task, "Running")])
    report([Report(task, "Success")])
    refreshed()
    refresh = traced.span("refresh")
    traced.span("complete")
    first, last = traced.spans("report")
    assert first.trace != last.trace
    assert traced.names(last.trace) == ["claim", "complete", "mark", "refresh", "report", "write"]
    assert traced.names(first.trace) == ["mark", "report"]
    assert (refresh.parent, refresh.trace) == (last.id, last.trace)
    assert kept(redis) == {}


def test_a_chunk_of_many_has_a_trace_of_its_own_to_which_each_refresh_links(
    traced: Collector, settings: Settings
) -> None:
    settings.REFRESH_FANOUT = 10
    execution_queue.cache_clear()
    pairs = [made(1) for _ in range(3)]
    for _, (task,) in pairs[:2]:
        report([Report(task, "Success")])
    traced.span("mark", count=2)
    with unsampled():
        report([Report(pairs[2][1][0], "Success")])
    claim = execution_queue().claim("me", 10).claim
    refresh_claim(claim)
    chunk = traced.span("refresh chunk")
    reports = traced.spans("report")
    assert chunk.trace not in {one.trace for one in reports}
    assert linked(chunk, *reports)
    assert (chunk.attributes["harbor_refresh.executions"], chunk.attributes["harbor_refresh.changed"]) == (3, 3)
    assert traced.parents(chunk.trace) == {
        "refresh chunk": "",
        "write": "refresh chunk",
        "complete": "refresh chunk",
    }
    for one in reports:
        (refresh,) = traced.spans("refresh", one.trace)
        assert refresh.parent == one.id
        assert linked(refresh, chunk)


def test_a_second_attempt_after_a_failure_is_a_second_span_of_the_trace(traced: Collector, redis: Redis) -> None:
    execution, (task,) = made(1)
    cursed(execution)
    report([Report(task, "Success")])
    refreshed()
    first = traced.span("refresh")
    assert (first.attributes[RESULT], 'check constraint "cursed"' in first.error) == ("failed", True)
    assert list(kept(redis)) == [member(execution)]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT cursed")
    refreshed()
    second = traced.span("refresh", count=2)
    traced.span("complete")
    (root,) = traced.spans("report")
    assert (first.parent, second.parent) == (root.id, root.id)
    assert (second.attributes[RESULT], second.error) == ("refreshed", "")
    assert [one.attributes["harbor_refresh.failed_before"] for one in traced.spans("claim")] == [0, 1]
    assert kept(redis) == {}


def test_a_report_that_comes_while_its_execution_is_refreshed_belongs_to_the_next_refresh(
    traced: Collector, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (task, other) = made(2)
    report([Report(task, "Success")])

    def report_once(point: str, _: object) -> None:
        if point == "committed":
            crash_points.handlers.clear()
            Context().run(report, [Report(other, "Success")])  # as in another process

    monkeypatch.setattr(crash_points, "handlers", [report_once])
    refreshed()
    assert len(kept(redis)) == 1
    refreshed()
    traced.span("refresh", count=2)
    first, second = traced.spans("refresh")
    roots = {one.trace: one.id for one in traced.spans("report")}
    assert [first.parent, second.parent] == [roots.pop(first.trace), roots.pop(second.trace)]
    assert kept(redis) == {}


def test_a_worker_that_refreshes_before_the_tick_goes_on_takes_no_claim_from_the_trace(traced: Collector) -> None:
    """The contexts are read before the chunks are published, and so before any worker can drop them."""
    _, (task,) = made(1)
    report([Report(task, "Success")])

    def publish(chunks: Sequence[Claim]) -> None:
        for chunk in chunks:
            Context().run(refresh_claim, chunk)

    dispatch(publish, 0)
    claim = traced.span("claim")
    assert claim.trace == traced.span("refresh").trace


def test_a_refresh_that_follows_the_mark_at_once_finds_the_context_of_its_report(
    traced: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context is kept before the mark, and so before any tick can claim the execution."""
    mark = ExecutionQueue.mark

    def mark_and_refresh(self: ExecutionQueue, members: Sequence[str]) -> Any:
        answer = mark(self, members)
        Context().run(refreshed)
        return answer

    monkeypatch.setattr(ExecutionQueue, "mark", mark_and_refresh)
    _, (task,) = made(1)
    report([Report(task, "Success")])
    refresh = traced.span("refresh")
    assert refresh.parent == traced.span("report").id


def test_a_redis_that_forgot_the_context_costs_the_trace_its_refresh_and_nothing_else(
    traced: Collector, redis: Redis
) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Success")])
    redis.delete("cache:execution:refresh:traces")
    refreshed()
    assert status_of(execution) == "Success"
    traced.span("refresh chunk")
    traced.span("write")
    (root,) = traced.spans("report")
    assert traced.names(root.trace) == ["mark", "report"]


@pytest.mark.parametrize("text", ["no context", "00-0-0-01 x", "\n\n", ""])
def test_a_context_that_cannot_be_read_is_none(text: str, traced: Collector, redis: Redis) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Success")])
    redis.hset("cache:execution:refresh:traces", member(execution), text)
    refreshed()
    assert status_of(execution) == "Success"
    assert traced.span("refresh chunk").links == ()


def test_a_caller_that_does_not_sample_costs_no_span_and_no_command(traced: Collector, redis: Redis) -> None:
    execution, (task,) = made(1)
    with unsampled():
        report([Report(task, "Success")])
        assert "traces" not in whole_redis(redis)
        refreshed()
    assert status_of(execution) == "Success"
    _, (task,) = made(1)
    report([Report(task, "Success")])
    traced.span("report")  # it ends last
    assert traced.names() == ["mark", "report"]


def test_a_report_in_the_transaction_of_its_caller_is_marked_in_its_trace_after_the_commit(
    traced: Collector, redis: Redis
) -> None:
    _, (task,) = made(1)
    with transaction.atomic():
        report([Report(task, "Success")])
        traced.span("report")
        assert kept(redis) == {}
    mark = traced.span("mark")
    (root,) = traced.spans("report")
    assert (mark.parent, mark.trace) == (root.id, root.trace)
    refreshed()
    assert traced.span("refresh").parent == root.id


def test_a_report_of_a_stop_shows_the_refresh_that_follows_at_once(traced: Collector) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Stopped")])
    root = traced.span("report")  # it ends last
    (refresh,) = traced.spans("refresh")
    assert refresh.parent == root.id
    assert {name: refresh.attributes[f"harbor_refresh.{name}"] for name in ("result", "execution.id")} == {
        "result": "refreshed",
        "execution.id": execution.pk,
    }


def test_without_a_queue_the_refresh_is_below_its_report_and_redis_keeps_nothing(
    traced: Collector, redis: Redis, settings: Settings
) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    _, (task,) = made(1)
    report([Report(task, "Success")])
    traced.span("report")
    (root,) = traced.spans("report")
    assert traced.parents(root.trace) == {"report": "", "refresh": "report", "write": "refresh"}
    assert kept(redis) == {}


def test_a_report_of_many_executions_is_followed_to_the_first_hundred(traced: Collector, redis: Redis) -> None:
    ids = many(150)
    tasks = Execution.objects.filter(pk__in=ids).values_list("tasks__pk", flat=True)
    report([Report(task, "Success") for task in tasks])
    assert len(kept(redis)) == 100
    refreshed()
    chunk = traced.span("refresh chunk")
    assert chunk.attributes["harbor_refresh.executions"] == 150
    traced.span("refresh", count=100)
    (root,) = traced.spans("report")
    assert {one.trace for one in traced.spans("refresh")} == {root.trace}
    assert {one.attributes[RESULT] for one in traced.spans("refresh")} == {"refreshed"}


def test_lines_that_are_logged_inside_a_sampled_report_have_the_id_of_its_trace(
    traced: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(wakeup, "send_tick", lambda: seen.append(bound_ids()))
    _, (task,) = made(1)
    report([Report(task, "Success")])
    root = traced.span("report")
    assert seen == [{"trace": root.trace}]
    assert bound_ids() == {}


def test_a_trouble_of_the_tracer_fails_no_report_and_no_refresh_and_is_told_once(
    traced: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Any:
        raise RuntimeError("no tracer")

    monkeypatch.setattr(spans.of_this_process, "get", broken)
    execution, (task,) = made(1)
    report([Report(task, "Success")])
    refreshed()
    assert status_of(execution) == "Success"
    told = [one.getMessage() for one in caplog.records if "traced" in one.getMessage()]
    assert told == ["A step could not be traced; the next ones are tried"]
    monkeypatch.setattr(spans, "_is_logged", False)
