"""A look at the service: what each server knows, and what is left when one of them is down."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import current_app
from django.db import connection, connections
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django_celery_beat.models import PeriodicTask

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.local.ports import choose_port
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.broker.celery_queues import JOBS, QUEUES, TICKS
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.management.verbs.status import _counts
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.news import state as state_module
from harbor_refresh.tasks.news.state import look
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from harbor_refresh.tasks.pipeline.schedule import ROWS
from harbor_refresh.tasks.queue.connection import absence_remembered, connect
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from settings.base import STATEMENT_TIMEOUTS
from tests import servers
from tests.elsewhere import uses
from tests.integration.redis_state import Redis, queue_with_clock, signs_of_life_come, whole_redis

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_service_that_has_done_nothing_yet_is_known_in_full() -> None:
    state = look()
    assert state.absent == {}
    assert (state.backlog, state.in_flight, state.failed_before, state.oldest_waiting) == (0, 0, 0, 0.0)
    assert (state.nodes, state.dead, state.pause, state.jobs_in_progress) == ((), (), 0.0, 0)
    assert (state.last_heartbeat, state.last_tick, state.last_reconcile) == (None,) * 3
    assert state.messages == dict.fromkeys(QUEUES, 0)
    assert (state.quarantined, state.dead_letters, state.open_actions, state.drifted) == (0, 0, 0, None)
    assert state.schedule is not None
    assert {(row.task, row.is_enabled, row.interval, row.sent) for row in state.schedule} == {
        (row.task, True, row.seconds, None) for row in ROWS
    }
    assert state.beat_silent is None


def test_a_look_tells_what_waits_since_when_and_what_was_done(redis: Redis) -> None:
    queue, clock = queue_with_clock(redis, rest=0.0)
    queue.mark(["1:A", "2:B", "3:C"])
    clock.move(5)
    queue.mark(["1:A", "4:D"])
    claim = queue.claim("n1", 3).claim
    clock.move(2)
    queue.heartbeat("n1")
    clock.move(1)
    seen = queue.stats()
    (left,) = {"1:A", "2:B", "3:C", "4:D"} - set(claim.members)
    assert (seen.backlog, seen.in_flight, seen.failed_before) == (1, 3, 0)
    assert seen.ago(seen.waiting_since) == (3 if left == "4:D" else 8)
    assert (seen.signs, seen.ago(seen.signs[0][1]), seen.dead) == ((("n1", clock.now - 1_000_000),), 1.0, ())
    assert seen.ago(seen.ticked) == 3.0


def test_of_a_long_queue_the_first_thousand_are_noted_and_the_oldest_is_known_until_it_is_claimed(
    redis: Redis,
) -> None:
    queue, clock = queue_with_clock(redis, rest=0.0, chunk=500, depth=3)
    queue.heartbeat("n1")
    queue.mark(f"{number}:A" for number in range(1, 1501))
    clock.move(10)
    queue.mark(f"{number}:A" for number in range(1501, 4001))
    assert redis.zcard(queue.keys.waiting) == 1_000
    seen = queue.stats()
    assert seen.ago(seen.waiting_since) == 10
    while batch := queue.claim("n1", 400):
        if not batch.claim.members:
            break
        assert set(redis.zrange(queue.keys.waiting, 0, -1)) <= set(redis.smembers(queue.keys.queue))
        queue.complete(batch.claim)
    seen = queue.stats()
    assert (seen.backlog, seen.waiting_since) == (0, 0)
    assert "waiting" not in whole_redis(redis, observed=True)


def test_a_note_without_its_member_is_not_believed(redis: Redis) -> None:
    """As a program that knows no notes leaves it, or a Redis that lost the queue alone."""
    queue, clock = queue_with_clock(redis, rest=0.0)
    queue.mark(["1:A"])
    clock.move(5)
    queue.mark(["2:B"])
    redis.srem(queue.keys.queue, "1:A")
    clock.move(1)
    seen = queue.stats()
    assert (seen.backlog, seen.ago(seen.waiting_since)) == (1, 1)


def test_a_node_that_falls_silent_is_dead_and_one_that_said_that_it_stops_is_not(redis: Redis) -> None:
    queue, clock = queue_with_clock(redis)
    for node in ("here", "killed", "stopped"):
        queue.heartbeat(node)
    queue.leave("stopped")
    clock.move(pacing.NODE_TTL_SECONDS)
    queue.heartbeat("here")
    clock.move(1)
    assert [name for name, _ in queue.stats().signs] == ["here"]
    assert queue.heartbeat("here") == 1
    assert queue.stats().dead == (("killed", clock.now - round((pacing.NODE_TTL_SECONDS + 1) * 1_000_000)),)
    state = whole_redis(redis, observed=True)
    assert [state[name].keys() for name in ("nodes", "dead", "left")] == [{"here"}, {"killed"}, {"stopped"}]


def test_while_heartbeats_may_be_missing_no_node_is_called_dead(redis: Redis) -> None:
    queue, clock = queue_with_clock(redis)
    queue.heartbeat("a")
    signs_of_life_come(redis, since=clock.now, heard=clock.now)
    clock.move(pacing.NODE_TTL_SECONDS + 1)
    redis.hset(queue.keys.presence, "heard", clock.now - round(pacing.NODE_TTL_SECONDS * 1_000_000))
    seen = queue.stats()
    assert (seen.signs, seen.dead, seen.ago(seen.heard)) == ((), (), pacing.NODE_TTL_SECONDS)


def test_only_a_hundred_dead_nodes_are_remembered(redis: Redis) -> None:
    queue, clock = queue_with_clock(redis)
    for number in range(150):
        clock.move(0.001)
        queue.heartbeat(f"n{number}")
    clock.move(pacing.NODE_TTL_SECONDS + 1)
    assert queue.heartbeat("here") == 150
    assert [name for name, _ in queue.stats().dead] == [f"n{number}" for number in reversed(range(50, 150))]


def test_what_the_database_knows_is_read_in_two_statements(queue: ExecutionQueue) -> None:
    held = [create(NewExecution("SCAN")).pk for _ in range(3)]
    quarantine(held, 5)
    PeriodicTask.objects.filter(task="tasks.sweep").update(enabled=False)
    PeriodicTask.objects.filter(task="tasks.reap").delete()
    PeriodicTask.objects.filter(task="tasks.claim_batch").update(last_run_at=Now() - timedelta(seconds=40))
    reconcile()
    with CaptureQueriesContext(connection) as captured:
        state = look()
    assert len([one for one in captured if "execution_quarantine" in one["sql"]]) == 1
    assert len(captured) <= 5, "BEGIN, the limit of time, the two statements, COMMIT"
    assert (state.quarantined, state.drifted) == (3, 0)
    assert state.last_reconcile is not None
    assert 0 <= state.last_reconcile < 60
    assert state.schedule is not None
    assert [row.task for row in state.schedule if not row.is_enabled] == ["tasks.sweep"]
    assert "tasks.reap" not in {row.task for row in state.schedule}
    assert state.beat_silent is not None
    assert 40 <= state.beat_silent < 100


def test_reconcile_notes_the_marks_that_it_found_lost(redis: Redis) -> None:
    execution = create(NewExecution("SCAN", tasks=[NewTask()]))
    report([Report(execution.tasks.get().pk, "Success", 1)])
    redis.flushall()
    reconcile(full=True)
    assert (look().drifted, Watermark.objects.get().last_drifted) == (1, 1)
    reconcile(full=True)
    assert look().drifted == 0


def test_messages_of_every_priority_are_counted_by_queue(redis: Redis) -> None:
    for step in ("", "\x06\x163", "\x06\x169"):
        redis.rpush(JOBS + step, "x")
    redis.rpush(TICKS, "x", "y")
    assert look().messages == {**dict.fromkeys(QUEUES, 0), JOBS: 3, TICKS: 2}


def test_a_broker_of_another_kind_is_not_asked_and_not_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_app.conf, "broker_write_url", "sqs://localhost//")
    state = look()
    assert (state.messages, state.backlog) == (None, 0)
    assert state.absent == {}
    assert "queue messages" not in [name for name, *_ in _counts(state, 0)]


def test_a_broker_that_is_down_on_a_redis_of_its_own_does_not_hide_the_queue() -> None:
    with uses(servers.redis.url, f"redis://127.0.0.1:{choose_port()}/0"), absence_remembered():
        assert [set(look().absent) for _ in range(2)] == [{"broker"}, {"broker"}]


@contextmanager
def stopped(server: EmbeddedRedis) -> Iterator[None]:
    assert server.pid
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_a_redis_that_hangs_is_asked_once_and_all_else_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts are counted, not seconds: each is a connection of its own, and waits for half a second at most."""
    with EmbeddedRedis(tmp_path / "redis") as server, Redis.from_url(server.url) as operator:
        client = connect(server.url, 0.3, tries=1)
        hanging = ExecutionQueue(refresh_settings(), client, client)
        monkeypatch.setattr(state_module, "brief_queue", lambda: hanging)
        before = operator.info("stats")["total_connections_received"]
        with stopped(server):
            state = look()
        operator.ping()
        assert operator.info("stats")["total_connections_received"] - before == 1
        client.close()
    assert state.absent.keys() == {"redis", "broker"}
    assert "Timeout" in state.absent["redis"]
    assert (state.backlog, state.nodes, state.messages) == (None, None, None)
    assert (state.quarantined, len(state.schedule or ())) == (0, len(ROWS))


def test_a_database_that_is_down_hides_only_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    monkeypatch.setitem(connections["default"].settings_dict, "PORT", choose_port(None))
    state = look()
    connection.close()
    assert state.absent.keys() == {"database"}
    assert state.absent["database"].startswith("PostgreSQL: ")
    assert (state.quarantined, state.schedule, state.beat_silent) == (None, None, None)
    assert (state.backlog, state.nodes) == (0, ())


def test_a_database_that_is_too_slow_is_given_up(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, psycopg.connect(servers.postgres.url_for(database)) as other:
        patched.setattr(state_module, "PATIENCE", "100ms")
        other.execute("LOCK TABLE execution_quarantine IN ACCESS EXCLUSIVE MODE")
        state = look()
    assert state.absent == {"database": "PostgreSQL: canceling statement due to statement timeout"}
    assert look().absent == {}
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == (STATEMENT_TIMEOUTS["command"],), "the limit of the look ends with it"


def test_a_database_without_our_tables_is_told_in_words() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution_watermark RENAME TO gone")
    assert look().absent == {"database": 'PostgreSQL: relation "execution_watermark" does not exist'}


def test_a_design_that_cannot_count_its_marks_has_no_backlog(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REFRESH_STRATEGY = "scan"
    state = look()
    assert (state.strategy, state.backlog, state.in_flight) == ("scan", None, 0)
