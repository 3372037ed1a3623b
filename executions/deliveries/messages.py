"""A request to a webhook: its signed headers and its body."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from standardwebhooks import Webhook

from harbor_refresh.executions.deliveries.payload import body_of
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.news.handlers import Change
from harbor_refresh.executions.status import Status


@dataclass(frozen=True)
class Message:
    """One request. Neither the address, which may hold a token, nor a header is in its repr."""

    url: str = field(repr=False)
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)


def message(subscription: Subscription, change: Change) -> Message:
    """Write the request of this attempt. Its id is that of the change; its time and its signatures, one by each
    live secret, are new."""
    body = body_of(change, subscription.payload)
    now = datetime.now(UTC)
    signatures = (Webhook(secret).sign(change.id, now, body) for secret in subscription.live_secrets)
    headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", "harbor-refresh"),
        ("webhook-id", change.id),
        ("webhook-timestamp", str(int(now.timestamp()))),
        ("webhook-signature", " ".join(signatures)),
    ]
    return Message(subscription.url, headers, body.encode())


def trial(subscription: Subscription) -> Message:
    """Write a request that tests a webhook: about an execution 0, which never exists."""
    now = datetime.now(UTC)
    change = Change(
        id=f"test_{subscription.pk}_{uuid4().hex}",
        execution_id=0,
        vendor_type=next(iter(subscription.vendor_types), "TEST"),
        revision=1,
        from_status=Status.RUNNING,
        to_status=next(iter(subscription.statuses), Status.SUCCESS),
        at=now,
        status_message="This is a test. Nothing has changed.",
        is_deleted=True,
    )
    return message(subscription, change)
