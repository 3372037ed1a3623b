"""When a deliverer that has nothing left to do is needed next."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from executions.deliveries.claims import claim_for_webhooks, next_due
from executions.deliveries.deliverer import Deliverer
from executions.deliveries.outbox import write_deliveries
from executions.models import Delivery, Subscription
from tests.integration.executions.deliveries.changed_executions import ended, rerun
from tests.integration.executions.deliveries.receiver import Receiver, receiver
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database")

Subscribe = Callable[..., Subscription]


def due(seconds: float, **only: object) -> None:
    Delivery.objects.filter(state="pending", **only).update(next_at=Now() + timedelta(seconds=seconds))


def seconds() -> int | None:
    """Round up: the clock has gone on since the moment was written."""
    found = next_due()
    return None if found is None else int(found + 0.999)


@pytest.fixture
def pending(subscribed: Subscribe, good: Receiver) -> Subscription:
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
    assert seconds() == 40
    other = subscribed(good)
    ended(1)
    write_deliveries()
    due(40)
    due(30, subscription=other)
    assert seconds() == 30


def test_the_end_of_a_lease_counts(pending: Subscription) -> None:
    assert len(claim_for_webhooks(5, {}, 60.0)) == 3
    assert seconds() == 60


def test_what_is_due_for_longer_does_not_count(pending: Subscription) -> None:
    """Else a deliverer that may not send it would be woken again and again."""
    due(-5)
    assert next_due() is None


def test_what_has_become_due_a_moment_ago_counts(pending: Subscription) -> None:
    """It may have become due after the look that found nothing."""
    due(-0.1)
    assert next_due() == 0.0


def test_a_later_change_waits_for_the_moment_of_the_earlier_one(subscribed: Subscribe, good: Receiver) -> None:
    subscribed(good)
    executions = ended(1)
    rerun(executions, 2)
    write_deliveries()
    due(-5)
    due(20, revision=1)
    assert seconds() == 20


@pytest.mark.parametrize(
    ("delivery", "circuit", "wanted"), [(-5, 25, 25), (10, 25, 25), (40, 25, 40), (40, -5, 40)]
)
def test_nothing_is_due_before_the_pause_of_a_circuit_ends(
    pending: Subscription, delivery: float, circuit: float, wanted: int
) -> None:
    due(delivery)
    retry_at = Now() + timedelta(seconds=circuit)
    Subscription.objects.update(failures=7, failing_since=Now(), retry_at=retry_at)
    assert seconds() == wanted


def test_a_webhook_that_is_disabled_is_not_waited_for(pending: Subscription) -> None:
    due(10)
    Subscription.objects.update(enabled=False)
    assert next_due() is None


def test_a_deliverer_that_ends_says_when_the_next_retry_is_due(subscribed: Subscribe) -> None:
    said: list[float] = []
    with receiver(status=503, headers={"Retry-After": "60"}) as one:
        subscribed(one)
        ended(1)
        deliverer = Deliverer(wake_later=said.append)
        deliverer.wake()
        wait_for(lambda: deliverer._thread is None, "the deliverer to end")
    assert [int(one + 0.999) for one in said] == [60]
    due(-5)
    Subscription.objects.update(enabled=False)
    deliverer.wake()
    wait_for(lambda: deliverer._thread is None, "the deliverer to end once more")
    assert len(said) == 1
