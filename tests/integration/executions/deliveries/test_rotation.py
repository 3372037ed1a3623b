"""The secret of a webhook is rotated, and no delivery is refused for it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from standardwebhooks import Webhook, WebhookVerificationError

from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news.deliveries import deliverer, subscriptions
from harbor_refresh.executions.news.deliveries.subscriptions import rotate
from tests.integration.concurrency import Pause, at_once, in_background
from tests.integration.executions.deliveries.changed_executions import ended, move_clock, states
from tests.integration.executions.deliveries.receiver import Received, Receiver, receiver

pytestmark = pytest.mark.usefixtures("database")

Subscribe = Callable[..., Subscription]
Deliver = Callable[[], None]


def is_signed_with(secret: str, got: Received) -> bool:
    try:
        Webhook(secret).verify(got.body, got.headers)
    except WebhookVerificationError:
        return False
    return True


def signers(got: Received, *secrets: str) -> list[bool]:
    return [is_signed_with(one, got) for one in secrets]


def end_of_time() -> None:
    """Let the time of old secrets be over."""
    Subscription.objects.update(old_secret_ends_at=Now() - timedelta(seconds=1))


def test_old_and_new_secret_sign_until_the_time_of_the_old_one_is_over(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    first = subscribed(good).secret
    row = rotate(Subscription.objects.get().pk, 3_600)
    second = row.secret
    assert second != first
    assert row.old_secret_until is not None
    ended(1)
    deliver()
    end_of_time()
    ended(1)
    deliver()
    both, alone = good.received
    assert signers(both, first, second) == [True, True]
    assert len(both.headers["webhook-signature"].split(" ")) == 2
    assert signers(alone, first, second) == [False, True]
    assert Subscription.objects.get().old_secret_until is None


def test_a_test_is_signed_as_a_delivery_is(good: Receiver, subscribed: Subscribe) -> None:
    row = subscribed(good)
    new = rotate(row.pk)
    assert subscriptions.test(new).is_good
    assert signers(good.received[0], row.secret, new.secret) == [True, True]


@pytest.mark.parametrize(("times", "longest"), [((600, 60), 600), ((60, 600), 600)])
def test_a_rotation_within_the_time_of_an_old_secret_keeps_it_and_the_longer_time(
    good: Receiver, subscribed: Subscribe, deliver: Deliver, times: tuple[int, int], longest: int
) -> None:
    first = subscribed(good)
    second, third = (rotate(first.pk, seconds) for seconds in times)
    ended(1)
    deliver()
    assert signers(good.received[0], first.secret, second.secret, third.secret) == [True, False, True]
    assert third.old_secret_until is not None
    left = third.old_secret_until - timezone.now()
    assert timedelta(seconds=longest - 60) < left <= timedelta(seconds=longest)


def test_after_the_time_of_an_old_secret_the_next_rotation_keeps_the_present_one(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    first = subscribed(good)
    second = rotate(first.pk)
    end_of_time()
    third = rotate(first.pk)
    ended(1)
    deliver()
    assert signers(good.received[0], first.secret, second.secret, third.secret) == [False, True, True]


def test_with_zero_seconds_no_older_secret_signs(good: Receiver, subscribed: Subscribe, deliver: Deliver) -> None:
    first = subscribed(good)
    second = rotate(first.pk)
    third = rotate(first.pk, 0)
    ended(1)
    deliver()
    assert signers(good.received[0], first.secret, second.secret, third.secret) == [False, False, True]
    assert Subscription.objects.get().old_secret == ""


def test_rotations_at_once_keep_the_first_secret(good: Receiver, subscribed: Subscribe) -> None:
    first = subscribed(good)
    made = at_once(*[lambda: rotate(first.pk).secret] * 3)
    row = Subscription.objects.get()
    assert (len(set(made)), row.old_secret, row.secret in made) == (3, first.secret, True)


@pytest.mark.parametrize("old_secret_seconds", [0, 3_600])
def test_a_delivery_that_was_leased_before_is_sent_again_if_the_receiver_knows_only_the_new_secret(
    subscribed: Subscribe, deliver: Deliver, old_secret_seconds: int
) -> None:
    """The receiver refuses what is not signed with the newest secret, from the moment of the rotation."""
    knows: list[str] = []
    with receiver(answer_of=lambda got: 204 if is_signed_with(knows[-1], got) else 401) as one:
        row = subscribed(one)
        knows.append(row.secret)
        ended(1)
        knows.append("whsec_" + "A" * 43 + "=")
        with Pause("answered") as answered, in_background(deliverer.deliver) as finish:
            # the request is signed and refused, and its result is not recorded yet
            answered.wait_until_reached()
            knows.append(rotate(row.pk, old_secret_seconds).secret)
            answered.go_on.set()
            finish()
        move_clock(seconds=5)
        deliver()
    assert states() == {"delivered": 1}
    assert one.ids() == [one.ids()[0]] * 2
    assert Delivery.objects.get().attempts == 2


def test_no_secret_is_in_a_text_of_its_row(subscribed: Subscribe, good: Receiver) -> None:
    row = rotate(subscribed(good).pk)
    assert "whsec_" not in f"{row} {row!r}"
