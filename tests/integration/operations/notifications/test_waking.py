"""The wake-up of the deliverer: one message after the first of many commits, and none that fails its caller."""

from collections.abc import Callable

import pytest
from pytest_django import Settings

from harbor_refresh.executions.deliveries import subscriptions
from harbor_refresh.executions.deliveries.deliverer import Deliverer
from harbor_refresh.executions.deliveries.handler_runs import due_handlers
from harbor_refresh.executions.deliveries.subscriptions import Wish
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news.after_commit import changes_written
from harbor_refresh.executions.news.handlers import Change, on_execution
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, TICKS
from harbor_refresh.tasks.broker.pooled import waiting
from harbor_refresh.tasks.celery_tasks import deliver, run_handlers
from harbor_refresh.tasks.operations import deliverer_thread
from harbor_refresh.tasks.operations.deliverer_thread import WorkersDeliverer
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.executions.deliveries.changed_executions import ended, states
from tests.integration.executions.deliveries.receiver import receiver
from tests.integration.redis_state import Redis, absent_redis
from tests.waiting import wait_for

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
    monkeypatch.setattr("harbor_refresh.tasks.operations.delivery_wakeup.execution_queue", lambda: away)
    changes_written.send(sender=None)
    assert "Could not wake a deliverer, the schedule will: Redis" in caplog.text


def test_a_deliverer_looks_on_for_longer_than_its_wake_up_stands() -> None:
    from harbor_refresh.executions.deliveries.deliverer import LINGER_SECONDS
    from harbor_refresh.tasks.pacing import DELIVERER_WAKE_MS

    assert LINGER_SECONDS * 1_000 >= 2 * DELIVERER_WAKE_MS


def test_the_thread_delivers_what_comes_while_it_looks_on_and_ends_when_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harbor_refresh.executions.deliveries.deliverer.LINGER_SECONDS", 600.0)
    one = Deliverer()
    with receiver() as good:
        subscriptions.create(Wish("x", good.url))
        one.wake()
        ended(1)
        one.wake()
        wait_for(lambda: len(good.received) == 1, "the first change")
        ended(1)
        wait_for(lambda: states() == {"delivered": 2}, "a change without a wake-up of its own")
        one.stop(seconds=60)
        assert one._thread is None
        one.wake()
        assert one._thread is None


def test_a_wake_up_is_never_lost_to_a_thread_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes at any moment, while the thread looks for the last time or is gone."""
    monkeypatch.setattr("harbor_refresh.executions.deliveries.deliverer.LINGER_SECONDS", 0.0)
    one = Deliverer()
    with receiver() as good:
        subscriptions.create(Wish("x", good.url))
        for count in range(1, 21):
            ended(1)
            one.wake()
            wait_for(lambda: len(good.received) == count, "the change")  # noqa: B023
        one.stop()


def test_the_deliverer_begins_again_after_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("harbor_refresh.executions.deliveries.deliverer.AWAY_SECONDS", 0.01)
    failures = iter([ValueError("ours")])

    def fails_once(self: object) -> None:
        for failure in failures:
            raise failure

    monkeypatch.setattr(WorkersDeliverer, "ask_handlers", fails_once)
    one = WorkersDeliverer()
    with receiver() as good:
        subscriptions.create(Wish("x", good.url))
        ended(1)
        one.wake()
        wait_for(lambda: states() == {"delivered": 1}, "the change")
        one.stop()
    assert "met an error and begins again in a moment: ValueError: ours" in caplog.text


def test_a_handler_is_asked_for_by_the_thread_and_run_by_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    from harbor_refresh.executions.news import handlers as registry

    told: list[Change] = []
    monkeypatch.setattr(registry, "_registered", [])

    @on_execution()
    def note(change: Change) -> None:
        told.append(change)

    one = WorkersDeliverer()
    one.wake()
    wait_for(Subscription.objects.exists, "the row of the handler")
    ended(2)
    one.wake()
    wait_for(lambda: waiting(DELIVERIES) >= 2, "a message for the handler")
    one.stop()
    subscription_id = Subscription.objects.get().pk
    assert due_handlers() == []
    run_handlers(subscription_id)
    assert len(told) == 2
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


@pytest.fixture(autouse=True)
def no_thread_outlives_its_test() -> Callable[[], None]:
    return deliverer_thread.of_this_process.stop
