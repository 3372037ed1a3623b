"""The wake-up of the deliverer: one message after the first of many commits, none that fails its caller, and
none that is lost."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from harbor_refresh.executions.deliveries import outbox, subscriptions
from harbor_refresh.executions.deliveries.handler_runs import due_handlers
from harbor_refresh.executions.deliveries.subscriptions import Wish
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news.after_commit import changes_written
from harbor_refresh.executions.news.handlers import Change, on_execution
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, TICKS
from harbor_refresh.tasks.broker.pooled import waiting
from harbor_refresh.tasks.celery_tasks import deliver, recover_stale, run_handlers
from harbor_refresh.tasks.operations import delivery_runs
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.executions.deliveries.changed_executions import ended, move_clock, states
from tests.integration.executions.deliveries.receiver import Received, receiver
from tests.integration.redis_state import Redis, absent_redis

pytestmark = pytest.mark.usefixtures("database", "redis")

KEY = "cache:execution:refresh:deliverer"


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.REFRESH_DELIVER_NETWORKS = ("127.0.0.1/32",)


def test_many_changes_send_one_message_and_the_key_expires(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a minute here, and not after a second: so many changes may take longer."""
    assert pacing.DELIVERER_WAKE_MS == 1_000
    monkeypatch.setattr(pacing, "DELIVERER_WAKE_MS", 60_000)
    subscriptions.create(Wish("x", "http://127.0.0.1:9/"))
    for _ in range(5):
        ended(1)
        redis.persist("cache:execution:refresh:wake")  # that of the marks
    assert (waiting(DELIVERIES), waiting(TICKS)) == (1, 1)  # the other one is that of the marks
    assert 0 < redis.pttl(KEY) <= 60_000
    redis.delete(KEY)
    ended(1)
    assert waiting(DELIVERIES) == 2


def test_without_a_subscription_no_message_is_sent(redis: Redis) -> None:
    ended(1)
    assert (waiting(DELIVERIES), redis.exists(KEY)) == (0, 0)


def test_messages_do_not_pile_up_if_no_worker_takes_them() -> None:
    assert sum(deliver.apply_async() is not None for _ in range(10)) == waiting(DELIVERIES) == 4


def test_a_redis_that_is_away_fails_no_caller(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, queue: ExecutionQueue
) -> None:
    client = absent_redis()
    away = ExecutionQueue(queue.conf, client, client)
    monkeypatch.setattr("harbor_refresh.tasks.operations.delivery_runs.execution_queue", lambda: away)
    changes_written.send(sender=None)
    assert "Could not wake a deliverer, the schedule will: Redis" in caplog.text


def test_a_run_holds_the_wake_ups_while_it_looks_and_none_that_it_left_out_is_lost(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change comes in the middle of a run, and another one after its last look."""
    allow_wakes = ExecutionQueue.allow_wakes

    def end_one_and_allow(queue: ExecutionQueue) -> None:
        ended(1)
        assert waiting(DELIVERIES) == 0
        allow_wakes(queue)

    monkeypatch.setattr(ExecutionQueue, "allow_wakes", end_one_and_allow)

    def end_another(_: Received) -> int:
        if len(good.received) == 1:
            ended(1)
            connection.close()  # that of the receiver's thread
        return 204

    with receiver(answer_of=end_another) as good:
        subscriptions.create(Wish("x", good.url))
        ended(1)
        redis.delete(DELIVERIES)
        deliver()
        assert len(good.received) == 3
        assert states() == {"delivered": 3}
    assert not redis.exists(KEY)
    ended(1)
    assert waiting(DELIVERIES) == 1


def test_a_run_whose_time_is_over_goes_on_in_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_runs, "RUN_SECONDS", 0.001)
    with receiver() as good:
        subscriptions.create(Wish("x", good.url))
        deliver()
    assert waiting(DELIVERIES) == 1


def test_a_database_that_is_away_fails_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> None:
        raise DatabaseAway("away")

    monkeypatch.setattr(outbox, "run", lambda *_: away())
    deliver()
    assert "The database is away, 0 executions wait for it: away" in caplog.text


@pytest.mark.parametrize("what", ["a change", "a delivery"])
def test_recovery_wakes_a_run_for_what_is_due_and_for_nothing_else(redis: Redis, what: str) -> None:
    subscriptions.create(Wish("x", "http://127.0.0.1:9/"))
    ended(1)
    if what == "a delivery":
        outbox.write_deliveries()
    redis.delete(KEY, DELIVERIES)
    recover_stale()
    assert waiting(DELIVERIES) == 1
    outbox.write_deliveries()
    move_clock(seconds=-60)
    redis.delete(KEY, DELIVERIES)
    recover_stale()
    assert waiting(DELIVERIES) == 0


def test_nothing_is_due_behind_an_open_circuit_and_for_a_webhook_that_is_disabled() -> None:
    subscriptions.create(Wish("x", "http://127.0.0.1:9/"))
    ended(1)
    outbox.write_deliveries()
    assert outbox.is_due()
    Subscription.objects.update(failures=5, failing_since=Now(), retry_at=Now() + timedelta(minutes=1))
    assert not outbox.is_due()
    move_clock(minutes=2)
    assert outbox.is_due()
    Subscription.objects.update(enabled=False)
    assert not outbox.is_due()


def test_a_handler_is_asked_for_by_a_run_and_called_by_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    from harbor_refresh.executions.news import handlers as registry

    told: list[Change] = []
    monkeypatch.setattr(registry, "_registered", [])

    @on_execution()
    def note(change: Change) -> None:
        told.append(change)

    deliver()
    ended(2)
    before = waiting(DELIVERIES)
    deliver()
    assert waiting(DELIVERIES) == before + 1
    assert due_handlers() == []
    run_handlers(Subscription.objects.get().pk)
    assert len(told) == 2
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


@pytest.fixture(autouse=True)
def first_run_of_its_process() -> None:
    delivery_runs._prepare.cache_clear()
