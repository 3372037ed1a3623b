"""A request to a webhook: its signed headers, and its body as Standard Webhooks or as Slack has it."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import Any
from uuid import uuid4

from django.urls import NoReverseMatch, reverse
from standardwebhooks import Webhook

from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.models.notifications import Payload
from harbor_refresh.executions.news.handlers import Change
from harbor_refresh.executions.status import Status

TYPE = "execution.status_changed"
#: What a request tells of an execution, beside its id and its status.
OF_EXECUTION = (
    *("vendor_type", "vendor_id", "vendor_key", "status_message", "trigger", "extra_attrs"),
    *("start_time", "update_time", "end_time", "revision"),
)
#: Slack reads `&`, `<` and `>`.
escaped = partial(escape, quote=False)
#: Slack refuses a longer text of a block.
MAX_SLACK = 2_900
EMOJI = {Status.SUCCESS: ":white_check_mark:", Status.ERROR: ":x:", Status.STOPPED: ":octagonal_sign:"}


@dataclass(frozen=True)
class Message:
    """One request. Neither the address, which may hold a token, nor a header is in its repr."""

    url: str = field(repr=False)
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)


def message(subscription: Subscription, change: Change) -> Message:
    """Write the request of this attempt. Its id is that of the change; its time and its signatures are new."""
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


def body_of(change: Change, payload: str) -> str:
    body = slack(change) if payload == Payload.SLACK else standard(change)
    # in ASCII, because Harbor's JSON may hold half a surrogate pair, which UTF-8 cannot
    return json.dumps(body, separators=(",", ":"), default=_utc)


def _utc(at: datetime) -> str:
    """Write a moment; one without a zone is local, in a project with USE_TZ = False."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def standard(change: Change) -> dict[str, Any]:
    return {
        "type": TYPE,
        "timestamp": change.at,
        "data": {
            "execution": {
                "id": change.execution_id,
                "status": change.to_status,
                **{name: getattr(change, name) for name in OF_EXECUTION},
            },
            "from": change.from_status,
            "to": change.to_status,
            "revision": change.revision,
            "at": change.at,
            "counts": dict(change.counts),
            "duration_seconds": change.duration_seconds,
            "first_failures": [asdict(one) for one in change.first_failures],
            "deleted": change.is_deleted,
            "link": link(change),
        },
    }


def link(change: Change) -> str | None:
    """The page of the execution in the admin, if the service knows its own address."""
    base = intake_settings().public_url
    if not base or change.is_deleted:
        return None
    try:
        path = reverse("admin:harbor_executions_execution_change", args=[change.execution_id])
    except NoReverseMatch:  # a project without the admin
        return None
    return base.rstrip("/") + path


def slack(change: Change) -> dict[str, Any]:
    """One line for a notification, and blocks for the channel."""
    head = f"{escaped(change.vendor_type)} execution {change.execution_id}: {change.to_status}"
    page = link(change)
    shown = f"<{page}|{head}>" if page else head
    emoji = EMOJI.get(change.to_status, "")  # type: ignore[call-overload]  # a Status is its text
    lines = [f"{emoji} *{shown}*".strip()]
    facts = [f"{number:,} {status}" for status, number in sorted(change.counts.items())]
    if change.duration_seconds is not None:
        facts.append(f"{change.duration_seconds:,.1f} s")
    if facts:
        lines.append(escaped(" · ".join(facts)))
    lines += [
        f"• task {one.task_id} {escaped(one.job_id)}: {escaped(one.message)}" for one in change.first_failures
    ]
    text = "\n".join(lines)
    if len(text) > MAX_SLACK:
        text = text[:MAX_SLACK].rpartition("\n")[0] + "\n…"
    return {"text": head, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]}
