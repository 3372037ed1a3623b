"""Rotation: a webhook gets a new secret, and the old one signs as well for a while.

A receiver checks requests with the secret that it knows. Until it has the new one, it needs signatures by the old
one, so for this time a request carries several signatures, as Standard Webhooks allows.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from harbor_refresh.executions.deliveries.subscriptions import new_secret, webhook
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import OldSecret, Subscription

#: So long the old secret signs as well, if the caller does not say, and at most.
OLD_SECRET_SECONDS = 86_400
MAX_OLD_SECRET_SECONDS = 7 * 86_400
#: Old secrets of one webhook that sign at a time. Each is a signature in the header of each request.
MOST_OLD_SECRETS = 4


def rotate(subscription_id: int, old_secret_seconds: int = OLD_SECRET_SECONDS) -> Subscription:
    """Replace the secret of a webhook; return its row, which holds the new one. The old one signs as well for so
    many seconds. With 0 it signs no more, and neither do those that were replaced before it.

    1. Lock the row. Of two rotations at once, the second replaces what the first has made.
    2. Forget old secrets whose time is over, keep the present one among them, and write the new one.

    What if the process dies after the commit: the new secret was shown to no one. Rotate again: the secret that
    the receiver knows signs until its time, because each rotation keeps the secrets of those before it. What if
    this is done so often that the header would grow: it is refused, and nothing is changed.

    What if a delivery was claimed before the commit and is sent after it: it is signed with the old secrets alone.
    A receiver that already knows only the new one refuses it. `record_results.sql` finds by `rotations` that the
    refusal is about an older secret, and the delivery is tried again at once. A delivery that is claimed after the
    commit is signed with the new secret.
    """
    if not 0 <= old_secret_seconds <= MAX_OLD_SECRET_SECONDS:
        raise Refused(f"old_secret_seconds takes 0 to {MAX_OLD_SECRET_SECONDS:,}, and got {old_secret_seconds:,}")
    with transaction.atomic():
        row = webhook(subscription_id, for_update=True)
        old = OldSecret.objects.filter(subscription=row)
        if old_secret_seconds:
            old.filter(signs_until__lte=Now()).delete()
            if old.count() >= MOST_OLD_SECRETS:
                raise Refused(
                    f"{MOST_OLD_SECRETS} old secrets of this webhook sign already, which is the most: wait, or "
                    "rotate with old_secret_seconds=0"
                )
            until = Now() + timedelta(seconds=old_secret_seconds)
            OldSecret.objects.create(subscription=row, secret=row.secret, signs_until=until)
        else:
            old.delete()
        Subscription.objects.filter(pk=row.pk).update(secret=new_secret(), rotations=F("rotations") + 1)
        return webhook(subscription_id)


def in_words(old_secret_seconds: int) -> str:
    """Say how long the old secret signs, for the log of actions."""
    return f"the old secret signs for {old_secret_seconds:,} s" if old_secret_seconds else "no old secret signs"
