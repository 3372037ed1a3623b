"""The wake-ups of runs of deliveries: none fails its caller, and none is lost."""

from datetime import timedelta
from threading import get_ident
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.lease import Lease
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news.after_commit import changes_written
from harbor_refresh.executions.news.audit import Origin, Person
from harbor_refresh.executions.news.deliveries import deliverer, subscriptions
from harbor_refresh.executions.news.deliveries.claims import with_due
from harbor_refresh.executions.news.deliveries.deliverer import due_handlers
from harbor_refresh.executions.news.handlers import Change, on_execution
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES
from harbor_refresh.tasks.broker.channels import waiting
from harbor_refresh.tasks.celery_tasks import deliver, recover_stale, run_handlers
from harbor_refresh.tasks.operations import delivery_runs
from harbor_refresh.tasks.operations.pauses import pause, resume
from tests.integration.concurrency import at_once
from tests.integration.executions.deliveries.changed_executions import ended, move_clock, states
from tests.integration.executions.deliveries.receiver import Received, receiver
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.REFRESH_DELIVER_NETWORKS = ("127.0.0.1/32",)


def test_without_a_subscription_no_message_is_sent() -> None:
    ended(1)
    assert waiting(DELIVERIES) == 0


def test_a_broker_that_is_down_fails_no_caller(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def down(_: str) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr("harbor_refresh.tasks.operations.delivery_runs.wakeup.send", down)
    changes_written.send(sender=None)
    assert "Could not wake a deliverer, the schedule will: ConnectionError: no broker" in caplog.text


def test_handlers_that_wait_keep_no_run_away() -> None:
    subscriptions.create("x", "http://127.0.0.1:9/")
    for _ in range(delivery_runs.MAX_WAITING):
        run_handlers.apply_async((0,))
    ended(1)
    assert waiting(DELIVERIES) == delivery_runs.MAX_WAITING + 1


def test_messages_do_not_pile_up_if_no_worker_takes_them() -> None:
    sent = sum(deliver.apply_async() is not None for _ in range(30))
    assert sent == waiting(DELIVERIES) == delivery_runs.MAX_WAITING_RUNS


def test_one_run_looks_at_a_time_and_finds_what_comes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change comes in the middle of a run, and another one after its last look. The messages of both may come
    while it has its lease, so their runs end at once."""
    release = Lease.release
    look, lookers = deliverer.deliver, set()
    came: list[str] = []

    def noted(*words: Any) -> bool:
        lookers.add(get_ident())
        return look(*words)

    def end_another() -> None:
        ended(1)
        deliver()

    def answer(_: Received) -> int:
        if len(good.received) == 1:
            at_once(end_another)
        return 204

    def end_another_and_release(lease: Lease) -> None:
        if not came:
            came.append("after the last look")
            at_once(end_another)
        release(lease)

    monkeypatch.setattr(deliverer, "deliver", noted)
    with receiver(answer_of=answer) as good:
        subscriptions.create("x", good.url)
        ended(1)
        monkeypatch.setattr(Lease, "release", end_another_and_release)
        deliver()
        assert states() == {"delivered": 3}
        assert len(good.received) == 3
        assert lookers == {get_ident()}


def test_a_run_whose_time_is_over_goes_on_in_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliverer, "RUN_SECONDS", 0)
    with receiver() as good:
        subscriptions.create("x", good.url)
        deliver()
    assert waiting(DELIVERIES) == 1


def test_a_database_that_is_down_fails_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def down() -> None:
        raise DatabaseDown("down")

    monkeypatch.setattr(deliverer, "write_deliveries", down)
    deliver()
    assert "The database is down, 0 executions wait for it: down" in caplog.text


@pytest.mark.parametrize("what", ["a change", "a delivery"])
def test_recovery_wakes_a_run_for_what_is_due_and_for_nothing_else(redis: Redis, what: str) -> None:
    subscriptions.create("x", "http://127.0.0.1:9/")
    ended(1)
    if what == "a delivery":
        deliverer.write_deliveries()
    redis.delete(DELIVERIES)
    recover_stale()
    assert waiting(DELIVERIES) == 1
    deliverer.write_deliveries()
    move_clock(seconds=-60)
    redis.delete(DELIVERIES)
    recover_stale()
    assert waiting(DELIVERIES) == 0


def test_nothing_is_due_behind_an_open_circuit_and_for_a_webhook_that_is_disabled() -> None:
    subscriptions.create("x", "http://127.0.0.1:9/")
    ended(1)
    deliverer.write_deliveries()
    assert with_due().exists()
    Subscription.objects.update(failures=5, failing_since=Now(), retry_at=Now() + timedelta(minutes=1))
    assert not with_due().exists()
    move_clock(minutes=2)
    assert with_due().exists()
    Subscription.objects.update(enabled=False)
    assert not with_due().exists()


def test_a_handler_is_asked_for_by_a_run_and_called_by_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    from harbor_refresh.executions.news import handlers as registry

    told: list[Change] = []
    monkeypatch.setattr(registry, "_registered", {})

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


def test_while_deliveries_are_paused_nothing_is_delivered_and_recovery_wakes_the_next_run(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor_refresh.executions.news import handlers as registry

    person = Person("alice", Origin.TERMINAL)
    told: list[Change] = []
    monkeypatch.setattr(registry, "_registered", {})

    @on_execution()
    def note(change: Change) -> None:
        told.append(change)

    with receiver() as good:
        subscriptions.create("x", good.url)
        deliver()
        handler = Subscription.objects.get(kind="handler").pk
        pause(DELIVERIES, person)
        ended(1)
        recover_stale()
        deliver()  # which lists the change, so that the sweep may delete its execution
        run_handlers(handler)
        assert (good.received, told, states()) == ([], [], {"pending": 2})
        redis.delete(DELIVERIES)
        resume(DELIVERIES, person)
        recover_stale()
        assert waiting(DELIVERIES) == 1
        deliver()
        run_handlers(handler)
        assert (len(good.received), len(told), states()) == (1, 1, {"delivered": 2})


@pytest.fixture(autouse=True)
def first_run_of_its_process() -> None:
    delivery_runs._prepare.cache_clear()
