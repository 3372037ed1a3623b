"""Received messages: a signed message is taken once, however often it is sent."""

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models.functions import Now

from harbor_refresh.executions.database import delete_first, run
from harbor_refresh.executions.errors import Replayed
from harbor_refresh.executions.models import ReceivedMessage

if TYPE_CHECKING:
    from harbor_refresh.executions.access.signatures import SignedMessage

#: A message may be signed five minutes ahead, and is accepted until five minutes after that.
KEPT = timedelta(minutes=10)
#: Each message forgets up to so many old ones, so the table stays as small as ten minutes of messages are.
AT_ONCE = 2


def receive(message: "SignedMessage") -> None:
    """Record in the caller's transaction that this message was received. Raises Replayed if it was before.

    If the caller fails, then its transaction is rolled back with this record, and the message may be sent again.
    If one message comes twice at once, then the second waits for the first, and is refused if that commits.
    """
    delete_first(ReceivedMessage.objects.filter(at__lt=Now() - KEPT).order_by("at"), AT_ONCE)
    if not run("receive_message", id=message.id, at=message.at):
        raise Replayed
