"""Make, change, delete and test the subscriptions of webhooks, and replace their secrets.

Until a receiver has the new secret, it needs signatures by the old one, so for a while a request carries two
signatures, as Standard Webhooks allows.
"""

import base64
import secrets
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from harbor_refresh.executions.conf import pacing
from harbor_refresh.executions.database import allow_long_statements, violates
from harbor_refresh.executions.errors import ExtraMissing, NoSuchSubscription, Refused
from harbor_refresh.executions.models import Callback, Delivery, Subscription
from harbor_refresh.executions.models.notifications import Kind, State
from harbor_refresh.executions.news import callbacks
from harbor_refresh.executions.news.deliveries import addresses, answers, deliverer
from harbor_refresh.executions.news.deliveries.answers import Answer
from harbor_refresh.executions.text import shown

#: Each change is compared with each subscription.
MAX_SUBSCRIPTIONS = 200
#: How the names of other subscriptions begin. They are made with the first use of what they are for.
RESERVED = {callbacks.PREFIX: "callback", deliverer.PREFIX: "handler"}
#: So long the old secret signs as well, if the caller does not say, and at most.
OLD_SECRET_SECONDS = 86_400
MAX_OLD_SECRET_SECONDS = 7 * 86_400
#: A person waits for a test.
TEST_SECONDS = 5.0
#: As PostgreSQL has named it.
NAME_IS_UNIQUE = "execution_subscription_name_key"
#: What a caller chooses of a webhook. An empty list matches all.
FIELDS = ("name", "url", "vendor_types", "statuses", "triggers", "payload", "enabled")


def create(name: str, url: str, **fields: Any) -> Subscription:
    """Make a subscription with a new secret. Its first change is one that is refreshed after the commit."""
    row = Subscription(kind=Kind.WEBHOOK, secret=new_secret(), name=name, url=url, **fields)
    refuse_unusable(row)
    _save(row)
    return row


def change(subscription_id: int, **fields: Any) -> Subscription:
    """Change these fields of a webhook. Its circuit is closed, because the change may have repaired it."""
    with transaction.atomic():
        row = webhook(subscription_id, for_update=True)
        was = row.name
        values = {**fields, "failures": 0, "failing_since": None, "retry_at": None}
        for name, value in values.items():
            setattr(row, name, value)
        refuse_unusable(row, was)
        _save(row, update_fields=values)
    return row


def _save(row: Subscription, **options: Any) -> None:
    try:
        with transaction.atomic():
            row.save(**options)
    except IntegrityError as exc:
        if not violates(exc, NAME_IS_UNIQUE):
            raise
        raise Refused(f"there is a subscription with the name {shown(row.name)} already") from exc


def rotate(subscription_id: int, old_secret_seconds: int = OLD_SECRET_SECONDS) -> Subscription:
    """Replace the secret of a webhook; return its row, which holds the new one. The old one signs as well for so
    many seconds; with 0 it signs no more.

    If an old secret signs already, it stays the old one, for the longer of the two times. So a rotation whose
    answer was lost can be repeated: the receiver still knows the old secret.
    """
    ends_at = timezone.now() + timedelta(seconds=old_secret_seconds)
    with transaction.atomic():
        row = webhook(subscription_id, for_update=True)
        if not old_secret_seconds:
            row.old_secret, row.old_secret_ends_at = "", None
        else:
            row.old_secret = row.live_secrets[-1]
            row.old_secret_ends_at = max(row.old_secret_until or ends_at, ends_at)
        row.secret = new_secret()
        row.save(update_fields=["secret", "old_secret", "old_secret_ends_at"])
    return row


def in_words(row: Subscription) -> str:
    """Say how long the old secret signs, for the log of actions."""
    until = row.old_secret_until
    # in a project with USE_TZ = False the moment is local, without a zone
    return f"the old secret signs until {until:%Y-%m-%d %H:%M:%S %Z}".rstrip() if until else "no old secret signs"


def delete(subscription_id: int) -> None:
    """Delete a subscription and its deliveries. What is being sent still arrives. Raises Refused for that of a
    callback which executions have. The subscription is locked before its pending deliveries, as by
    results, which are recorded before that or find no delivery any more. Those that have ended go first: there may
    be millions, and new deliveries of all subscriptions would wait for the lock."""
    its = Delivery.objects.filter(subscription_id=subscription_id)
    with transaction.atomic():
        allow_long_statements()
        its.exclude(state=State.PENDING)._raw_delete(using="default")
        row = Subscription.objects.select_for_update().filter(pk=subscription_id).first()
        if row is None:
            raise NoSuchSubscription(subscription_id)
        if row.kind == Kind.CALLBACK and Callback.objects.filter(handler=row.handler).exists():
            raise Refused(f"executions have callbacks of {row.handler}, which would be lost")
        its._raw_delete(using="default")
        Subscription.objects.filter(pk=subscription_id)._raw_delete(using="default")


def test(row: Subscription) -> Answer:
    """Send a test to a webhook, in this process, and return the answer. It changes no row."""
    if not answers.is_installed():
        return Answer(None, str(ExtraMissing()))
    from harbor_refresh.executions.news.deliveries.sender import Sender

    with Sender() as sender:
        return sender.test(row, min(TEST_SECONDS, pacing.DELIVER_TIMEOUT_SECONDS))


def webhook(subscription_id: int, *, for_update: bool = False) -> Subscription:
    rows = Subscription.objects.select_for_update(no_key=True) if for_update else Subscription.objects
    row = rows.filter(pk=subscription_id, kind=Kind.WEBHOOK).first()
    if row is None:
        raise NoSuchSubscription(subscription_id)
    return row


def new_secret() -> str:
    """A secret as Standard Webhooks writes it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def refuse_unusable(row: Subscription, was: str = "") -> None:
    """Check what the schema of the API and the form of the admin do not. `was`: the name that the webhook has
    already, which stays allowed. Empty: it is a new webhook."""
    if not was and not answers.is_installed():
        raise ExtraMissing
    if not was and Subscription.objects.count() >= MAX_SUBSCRIPTIONS:
        raise Refused(f"there are {MAX_SUBSCRIPTIONS} subscriptions already, which is the most")
    if row.name != row.name.strip():
        raise Refused("name takes no space at its ends")
    for prefix, owner in RESERVED.items():
        if row.name.startswith(prefix) and row.name != was:
            raise Refused(f"a name that begins with {prefix!r} is that of a {owner}")
    addresses.refuse_unusable(row.url)
