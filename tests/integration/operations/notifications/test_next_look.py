"""The wake-up for the next retry: a timer of the process, and one message for all that is due."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Thread

import pytest
from django.db.models import DurationField, ExpressionWrapper, F, Value
from django.db.models.functions import Now
from pytest_django import Settings

from harbor_refresh.executions.deliveries import subscriptions
from harbor_refresh.executions.deliveries.outbox import write_deliveries
from harbor_refresh.executions.deliveries.subscriptions import Wish
from harbor_refresh.executions.models import Delivery
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES
from harbor_refresh.tasks.broker.pooled import waiting
from harbor_refresh.tasks.operations import delivery_wakeup
from harbor_refresh.tasks.operations.deliverer_thread import WorkersDeliverer
from harbor_refresh.tasks.operations.delivery_wakeup import NextLook
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


@pytest.fixture
def looks() -> Iterator[Callable[[], NextLook]]:
    """Make the timers of other processes."""
    made: list[NextLook] = []

    def make() -> NextLook:
        made.append(NextLook())
        return made[-1]

    yield make
    for one in made:
        if one._timer:
            one._timer.cancel()


def timers(*looks: NextLook) -> list[Thread]:
    return [one._timer for one in looks if one._timer]


def end(waiting_for_them: list[Thread]) -> None:
    wait_for(lambda: not any(one.is_alive() for one in waiting_for_them), "the timers to end")


def test_one_moment_sends_one_message_however_many_processes_wait_for_it(
    looks: Callable[[], NextLook], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their moment is the same here, and the wake-up stands for a minute, however slow the machine is."""
    for module in (pacing, delivery_wakeup):
        monkeypatch.setattr(module, "DELIVERER_WAKE_MS", 60_000)
    monkeypatch.setattr(delivery_wakeup, "DELIVERER_LATE_SECONDS", 2.0)
    all_of_them = [looks() for _ in range(10)]
    with monkeypatch.context() as patched:
        now = time.monotonic()
        patched.setattr(delivery_wakeup, "monotonic", lambda: now)
        for one in all_of_them:
            for seconds in (2.0, 1.5, 1.8):
                one.plan(seconds)
    assert len(timers(*all_of_them)) == 10
    end(timers(*all_of_them))
    assert timers(*all_of_them) == []
    assert waiting(DELIVERIES) == 1


def test_a_wake_up_of_before_the_moment_does_not_stand_for_it(looks: Callable[[], NextLook], redis: Redis) -> None:
    """Its deliverer may have looked before the moment. A second message is sent when the first stands no more."""
    one = looks()
    delivery_wakeup.on_changes_written()
    assert waiting(DELIVERIES) == 1
    one.plan(0.3)
    wait_for(lambda: waiting(DELIVERIES) == 2, "the wake-up for the moment")
    end(timers(one))
    assert waiting(DELIVERIES) == 2


def test_an_earlier_moment_replaces_a_later_one_and_a_later_one_changes_nothing(
    looks: Callable[[], NextLook],
) -> None:
    one = looks()
    one.plan(500)
    later = one._timer
    one.plan(400)
    earlier = one._timer
    one.plan(600)
    assert one._timer is earlier
    assert later is not None
    assert later.finished.is_set()
    one.plan(0.2)
    wait_for(lambda: waiting(DELIVERIES) == 1, "the earlier moment")
    end(timers(one))
    assert timers(one) == []


def test_retries_that_are_due_send_a_message_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker takes each message at once, and its deliverer ends as soon as it has nothing to do."""
    monkeypatch.setattr("harbor_refresh.executions.deliveries.deliverer.LINGER_SECONDS", 0.0)
    one = WorkersDeliverer()
    sent: list[str] = []

    def send(name: str) -> None:
        sent.append(name)
        one.wake()

    with receiver() as good:
        subscriptions.create(Wish("x", good.url))
        ended(30)
        write_deliveries()
        monkeypatch.setattr("harbor_refresh.tasks.operations.delivery_wakeup.tick.send", send)
        first = Delivery.objects.order_by("pk").values_list("pk", flat=True)[0]
        apart = ExpressionWrapper((F("pk") - (first - 5)) * Value(timedelta(seconds=0.1)), DurationField())
        Delivery.objects.update(attempts=1, next_at=Now() + apart)
        began = time.monotonic()
        one.wake()
        wait_for(lambda: states() == {"delivered": 30}, "all retries")
        took = time.monotonic() - began
        one.stop()
    assert set(sent) == {"tasks.deliver"}
    assert len(sent) <= 1 + took


def test_a_redis_that_is_away_leaves_the_retry_to_the_schedule(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    queue: ExecutionQueue,
    looks: Callable[[], NextLook],
) -> None:
    client = absent_redis()
    away = ExecutionQueue(queue.conf, client, client)
    monkeypatch.setattr("harbor_refresh.tasks.operations.delivery_wakeup.execution_queue", lambda: away)
    one = looks()
    one.plan(0.0)
    wait_for(lambda: "Could not wake a deliverer, the schedule will" in caplog.text, "the warning")
    end(timers(one))
    assert timers(one) == []
