"""Rotation: a webhook gets a new secret, and the old one signs as well for a while.

A receiver checks requests with the secret that it knows. Until it has the new one, it needs signatures by the old
one, so for this time a request carries two signatures, as Standard Webhooks allows.
"""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from harbor_refresh.executions.deliveries.subscriptions import new_secret, webhook
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Subscription

#: So long the old secret signs as well, if the caller does not say, and at most.
OLD_SECRET_SECONDS = 86_400
MAX_OLD_SECRET_SECONDS = 7 * 86_400


def rotate(subscription_id: int, old_secret_seconds: int = OLD_SECRET_SECONDS) -> Subscription:
    """Replace the secret of a webhook; return its row, which holds the new one. The old one signs as well for so
    many seconds. With 0 no old secret signs any more.

    If an old secret signs already, it stays the old one, for the longer of the two times. So a rotation whose
    answer was lost can be repeated: the receiver still knows the old secret. The secret in between signs no more.

    If a delivery was claimed before the commit and is sent after it, only the replaced secret signs it. A receiver
    that knows only the new secret refuses it, and it is tried again (answers.py).
    """
    if not 0 <= old_secret_seconds <= MAX_OLD_SECRET_SECONDS:
        raise Refused(f"old_secret_seconds takes 0 to {MAX_OLD_SECRET_SECONDS:,}, and got {old_secret_seconds:,}")
    ends_at = timezone.now() + timedelta(seconds=old_secret_seconds) if old_secret_seconds else None
    with transaction.atomic():
        row = webhook(subscription_id, for_update=True)
        if ends_at is None:
            row.old_secret, row.old_secret_ends_at = "", None
        elif until := row.old_secret_until:
            row.old_secret_ends_at = max(until, ends_at)
        else:
            row.old_secret, row.old_secret_ends_at = row.secret, ends_at
        row.secret = new_secret()
        row.save(update_fields=["secret", "old_secret", "old_secret_ends_at"])
    return row


def in_words(row: Subscription) -> str:
    """Say how long the old secret signs, for the log of actions."""
    until = row.old_secret_until
    return f"the old secret signs until {until:%Y-%m-%d %H:%M:%S} UTC" if until else "no old secret signs"
