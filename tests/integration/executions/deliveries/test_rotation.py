"""The secret of a webhook is rotated, and no delivery is refused for it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from standardwebhooks import Webhook, WebhookVerificationError

from harbor_refresh.executions.deliveries import deliverer, rotation, subscriptions
from harbor_refresh.executions.deliveries.rotation import MOST_OLD_SECRETS, rotate
from harbor_refresh.executions.errors import NoSuchSubscription, Refused
from harbor_refresh.executions.models import Delivery, OldSecret, Subscription
from harbor_refresh.executions.retention.sweep import sweep
from tests.integration.concurrency import Pause, at_once, in_background
from tests.integration.executions.deliveries.changed_executions import ended, states
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


def end_of_time(**only: object) -> None:
    """Let the time of old secrets be over."""
    OldSecret.objects.filter(**only).update(signs_until=Now() - timedelta(seconds=1))


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
    assert subscriptions.test(row.pk).is_good
    assert signers(good.received[0], row.secret, new.secret) == [True, True]


def test_each_secret_of_two_quick_rotations_signs_until_its_own_time(
    good: Receiver, subscribed: Subscribe, deliver: Deliver
) -> None:
    first = subscribed(good)
    second = rotate(first.pk, 600)
    third = rotate(first.pk, 60)
    end_of_time(secret=second.secret)
    ended(1)
    deliver()
    assert signers(good.received[0], first.secret, second.secret, third.secret) == [True, False, True]


def test_with_zero_seconds_no_older_secret_signs(good: Receiver, subscribed: Subscribe, deliver: Deliver) -> None:
    first = subscribed(good)
    second = rotate(first.pk)
    third = rotate(first.pk, 0)
    ended(1)
    deliver()
    assert signers(good.received[0], first.secret, second.secret, third.secret) == [False, False, True]
    assert not OldSecret.objects.exists()


def test_rotations_at_once_keep_every_secret(good: Receiver, subscribed: Subscribe) -> None:
    first = subscribed(good)
    made = at_once(*[lambda: rotate(first.pk).secret] * 3)
    row = Subscription.objects.get()
    assert sorted(row.live_secrets) == sorted([first.secret, *made])
    assert (len(set(made)), row.rotations) == (3, 3)


def test_a_rotation_beyond_the_most_is_refused_and_changes_nothing(subscribed: Subscribe, good: Receiver) -> None:
    pk = subscribed(good).pk
    for _ in range(MOST_OLD_SECRETS):
        rotate(pk)
    before = Subscription.objects.get()
    with pytest.raises(Refused, match="4 old secrets of this webhook sign already"):
        rotate(pk)
    after = Subscription.objects.get()
    assert (after.live_secrets, after.rotations) == (before.live_secrets, before.rotations)
    end_of_time(secret=before.live_secrets[-1])
    assert rotate(pk).rotations == MOST_OLD_SECRETS + 1
    assert OldSecret.objects.count() == MOST_OLD_SECRETS


@pytest.mark.parametrize("seconds", [-1, rotation.MAX_OLD_SECRET_SECONDS + 1])
def test_a_time_out_of_bounds_is_refused(subscribed: Subscribe, good: Receiver, seconds: int) -> None:
    row = subscribed(good)
    with pytest.raises(Refused, match="takes 0 to 604,800"):
        rotate(row.pk, seconds)
    assert Subscription.objects.get().secret == row.secret


def test_a_handler_has_no_secret_to_rotate() -> None:
    row = Subscription.objects.create(kind="handler", name="handler x.y", handler="x.y")
    with pytest.raises(NoSuchSubscription):
        rotate(row.pk)


@pytest.mark.parametrize("old_secret_seconds", [0, 3_600])
def test_a_delivery_that_was_leased_before_is_sent_again_if_the_receiver_knows_only_the_new_secret(
    subscribed: Subscribe, old_secret_seconds: int
) -> None:
    """The receiver refuses for good what is not signed with the newest secret, from the moment of the rotation."""
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
    assert states() == {"delivered": 1}
    assert one.ids() == [one.ids()[0]] * 2
    assert Delivery.objects.get().attempts == 2


def test_a_refusal_that_has_nothing_to_do_with_a_rotation_is_final(
    subscribed: Subscribe, deliver: Deliver
) -> None:
    with receiver(status=401) as one:
        rotate(subscribed(one).pk)
        ended(1)
        deliver()
    assert (states(), len(one.received)) == ({"dead": 1}, 1)


def test_what_is_claimed_after_a_rotation_is_signed_with_the_new_secret(
    good: Receiver, subscribed: Subscribe
) -> None:
    row = subscribed(good)
    ended(1)
    deliverer.deliver()
    new = rotate(row.pk)
    ended(1)
    deliverer.deliver()
    assert [signers(got, row.secret, new.secret) for got in good.received] == [[True, False], [True, True]]


def test_old_secrets_go_with_their_subscription_and_with_their_time(subscribed: Subscribe, good: Receiver) -> None:
    kept, gone = subscribed(good), subscribed(good)
    rotate(kept.pk)
    rotate(kept.pk)
    rotate(gone.pk)
    subscriptions.delete(gone.pk)
    end_of_time(secret=kept.secret)
    assert sweep().forgotten == {"old secrets of webhooks": 1}
    assert OldSecret.objects.get().subscription_id == kept.pk


def test_no_secret_is_in_a_text_of_its_row(subscribed: Subscribe, good: Receiver) -> None:
    row = rotate(subscribed(good).pk)
    for one in (row, OldSecret.objects.get()):
        assert "whsec_" not in f"{one} {one!r}"
