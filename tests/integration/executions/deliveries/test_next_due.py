"""When a deliverer that has nothing left to do is needed next."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection, transaction

from harbor_refresh.executions.deliveries.claims import claim_for_webhooks, next_due
from harbor_refresh.executions.deliveries.deliverer import Deliverer
from harbor_refresh.executions.deliveries.outbox import write_deliveries
from harbor_refresh.executions.models import Delivery, Subscription
from tests.integration.executions.deliveries.changed_executions import ended, rerun
from tests.integration.executions.deliveries.receiver import Receiver, receiver
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database")

Subscribe = Callable[..., Subscription]


@pytest.fixture
def one_moment(database: str) -> Iterator[None]:
    """The test is one transaction, in which PostgreSQL's now() stands still."""
    with transaction.atomic():
        yield


def due(seconds: float, **only: object) -> None:
    at = TransactionNow() + timedelta(seconds=seconds)
    Delivery.objects.filter(state="pending", **only).update(next_at=at)


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


@pytest.fixture
def pending(one_moment: None, subscribed: Subscribe, good: Receiver) -> Subscription:
    """A webhook with three deliveries that wait."""
    row = subscribed(good)
    ended(3)
    write_deliveries()
    return row


def test_without_deliveries_nothing_is_due() -> None:
    assert next_due() is None


def test_the_earliest_moment_of_all_webhooks_counts(
    pending: Subscription, subscribed: Subscribe, good: Receiver
) -> None:
    due(50)
    due(40, pk=Delivery.objects.latest("pk").pk)
    assert next_due() == 40
    other = subscribed(good)
    ended(1)
    write_deliveries()
    due(40)
    due(30, subscription=other)
    assert next_due() == 30


def test_the_end_of_a_lease_counts(pending: Subscription) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        (now,) = cursor.fetchone()
    assert len(claim_for_webhooks(5, {}, 60.0)) == 3
    (end,) = set(Delivery.objects.values_list("next_at", flat=True))
    left = (end - now).total_seconds()
    assert left >= 60
    assert next_due() == pytest.approx(left)


def test_what_is_due_for_longer_does_not_count(pending: Subscription) -> None:
    """Else a deliverer that may not send it would be woken again and again."""
    due(-5)
    assert next_due() is None


def test_what_has_become_due_a_moment_ago_counts(pending: Subscription) -> None:
    """It may have become due after the look that found nothing."""
    due(-0.1)
    assert next_due() == 0.0


def test_a_later_change_waits_for_the_moment_of_the_earlier_one(
    one_moment: None, subscribed: Subscribe, good: Receiver
) -> None:
    subscribed(good)
    executions = ended(1)
    rerun(executions, 2)
    write_deliveries()
    due(-5)
    due(20, revision=1)
    assert next_due() == 20


@pytest.mark.parametrize(
    ("delivery", "circuit", "wanted"), [(-5, 25, 25), (10, 25, 25), (40, 25, 40), (40, -5, 40)]
)
def test_nothing_is_due_before_the_pause_of_a_circuit_ends(
    pending: Subscription, delivery: float, circuit: float, wanted: int
) -> None:
    due(delivery)
    retry_at = TransactionNow() + timedelta(seconds=circuit)
    Subscription.objects.update(failures=7, failing_since=TransactionNow(), retry_at=retry_at)
    assert next_due() == wanted


def test_a_webhook_that_is_disabled_is_not_waited_for(pending: Subscription) -> None:
    due(10)
    Subscription.objects.update(enabled=False)
    assert next_due() is None


def test_a_deliverer_that_ends_says_when_the_next_retry_is_due(
    subscribed: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[float] = []
    with receiver(status=503, headers={"Retry-After": "60"}) as one:
        subscribed(one)
        ended(1)
        deliverer = Deliverer()
        monkeypatch.setattr(deliverer, "wake_later", said.append)
        began = database_now()
        deliverer.wake()
        wait_for(lambda: deliverer._thread is None, "the deliverer to end")
    (seconds,) = said
    next_at = Delivery.objects.get().next_at
    assert next_at is not None
    refused_at, asked_at = (next_at - timedelta(seconds=one) for one in (60, seconds))
    assert began <= refused_at <= asked_at <= database_now()
    due(-5)
    Subscription.objects.update(enabled=False)
    deliverer.wake()
    wait_for(lambda: deliverer._thread is None, "the deliverer to end once more")
    assert len(said) == 1
