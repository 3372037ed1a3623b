"""Signatures of requests, as Standard Webhooks defines them: the headers webhook-id, webhook-timestamp and
webhook-signature over the raw body. A signed message is taken once, however often it is sent.

Owns which secrets are live and what a header may hold. The library checks the time (five minutes either way) and
compares in constant time.
"""

import re
from datetime import UTC, datetime

from django.db.models.functions import Now
from django.http import HttpRequest
from standardwebhooks import Webhook, WebhookVerificationError

from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.database import delete_first, run
from harbor_refresh.executions.errors import BadSignature, Refused, Replayed
from harbor_refresh.executions.models import ReceivedMessage

#: What the headers may hold. No dot, because dots separate the id, the timestamp and the body in what is signed.
#: Several signatures with spaces between them, for receivers that know only one of two secrets.
HEADERS = {
    "webhook-id": re.compile(r"[A-Za-z0-9_:@+=/-]{1,255}"),
    "webhook-timestamp": re.compile(r"[0-9]{1,12}"),
    "webhook-signature": re.compile(
        r"v1[a-z]?,[A-Za-z0-9+/]{1,200}={0,2}( v1[a-z]?,[A-Za-z0-9+/]{1,200}={0,2}){0,9}"
    ),
}


def is_signed(request: HttpRequest) -> bool:
    """Whether the request claims to be signed, and there is a secret to check it with."""
    return "webhook-signature" in request.headers and bool(intake_settings().signing_secrets)


def verify(request: HttpRequest) -> ReceivedMessage:
    """Check the signature over the raw body, before anything parses the body. Return what `receive` takes, in the
    transaction that uses the message. Raises BadSignature with the reason. With two live secrets, either may have
    signed, so that a secret is replaced without a gap."""
    headers = {name: request.headers.get(name, "") for name in HEADERS}
    for name, pattern in HEADERS.items():
        if not pattern.fullmatch(headers[name]):
            raise BadSignature(f"{name} is missing or malformed")
    reason = ""
    for secret in intake_settings().signing_secrets.split(","):
        try:
            Webhook(secret).verify(request.body, headers, json_parse=False)
        except WebhookVerificationError as exc:
            reason = str(exc)
        except ValueError:  # a body that is no UTF-8, a signature that is no base64
            reason = "the body or the signature cannot be read"
        else:
            at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
            return ReceivedMessage(id=headers["webhook-id"], at=at)
    raise BadSignature(reason or None)


def refuse_another_task(named: int | None, task_id: int) -> None:
    """Refuse a signed body that does not name the task of its address. The signature does not cover the address,
    so the body may have been signed for another task."""
    if named != task_id:
        raise Refused("a signed report names its task in its body: task_id takes the id that is in the address")


#: Each message forgets up to so many old ones, so the table stays as small as ten minutes of messages are.
AT_ONCE = 2


def receive(message: ReceivedMessage) -> None:
    """Record in the caller's transaction that this message was received. Raises Replayed if it was before.

    If the caller fails, then its transaction is rolled back with this record, and the message may be sent again.
    If one message comes twice at once, then the second waits for the first, and is refused if that commits.
    """
    delete_first(ReceivedMessage.objects.filter(at__lt=Now() - ReceivedMessage.KEPT).order_by("at"), AT_ONCE)
    if not run("receive_message", id=message.id, at=message.at):
        raise Replayed
