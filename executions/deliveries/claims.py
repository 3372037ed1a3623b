"""Claim due deliveries, read what they tell, record what became of them, and send dead letters again."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions import crash_points, pacing
from harbor_refresh.executions.database import absence_translated, run
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news import counters, signals
from harbor_refresh.executions.news.after_commit import tell_changes_written_after_commit
from harbor_refresh.executions.news.handlers import Change, Failure

#: So many failures in a row open the circuit of a webhook.
CIRCUIT_OPENS = 5
#: The longest pause of an open circuit, in seconds.
MAX_CIRCUIT_PAUSE = 600.0
#: A delivery is tried at most so often. One that fails with a result is too old before that, because the pauses
#: between its attempts grow. So this limit is for attempts that leave no result: their process ended, or hung.
MAX_ATTEMPTS = 30
#: Deliveries that one statement makes dead because of their age.
EXPIRED_AT_ONCE = 1_000
#: What is told of a change: so many failures of so long messages, and no longer extra_attrs.
MAX_FAILURES = 5
MAX_MESSAGE = 500
MAX_ATTRIBUTES = 10_000
#: What claim_deliveries.sql returns, as fields of a Delivery.
CLAIMED = (
    *("id", "subscription_id", "execution_id", "vendor_type", "revision"),
    *("from_status", "to_status", "changed_at", "attempts"),
)
#: What read_changes.sql returns after the id, as fields of a Change.
COLUMNS = (  # noqa: SIM905  # a list would be ten lines
    "vendor_id vendor_key status_message trigger extra_attrs start_time update_time end_time counts first_failures"
).split()
#: Dead letters that one transaction sends again, and one call. The caller may call again.
PAGE = 1_000
MOST = 100_000


class DeliveryOutcome(StrEnum):
    DELIVERED = "delivered"
    DEAD = "dead"
    AGAIN = "again"
    UNSENT = "unsent"
    LOST = "lost"


@dataclass(frozen=True)
class Result:
    """What became of a claimed delivery. `delay`: seconds until it is tried again, if it is. `answered`: whether
    the receiver works, or None if nothing is known of it."""

    claimed: Delivery
    outcome: DeliveryOutcome
    error: str = ""
    delay: float = 0.0
    answered: bool | None = None


@dataclass(frozen=True)
class Ended:
    """A delivery whose result was recorded."""

    id: int
    subscription: str
    execution_id: int
    revision: int
    state: str


def with_due() -> QuerySet[Subscription]:
    """Return the subscriptions that have something due: webhooks whose circuit lets a request through, and
    handlers that no worker runs."""
    due = Delivery.objects.filter(subscription=OuterRef("pk"), state=State.PENDING, next_at__lte=Now())
    is_free = Q(retry_at=None) | Q(retry_at__lte=Now())
    return Subscription.objects.filter(is_free, Exists(due), enabled=True, missing_since=None)


def claim(room: int, lease: float, *, only: int | None = None, sending: Sequence[int] = ()) -> list[Delivery]:
    """Claim up to `room` due deliveries of each webhook, or of the handler `only`. `sending` are the subscriptions
    of deliveries that the caller is sending: each of them takes one of the room. If the process dies afterwards,
    they are due again when the lease ends. The caller may send them until then; `attempts` is the claim's token.

    What was tried as often as it may be is given up, because its last process ended or hung in it, and the
    deliveries behind it are claimed instead. If that last attempt ends after all, its claim was overtaken, and it
    records nothing.
    """
    while True:
        with absence_translated():
            rows = run(
                "claim_deliveries", only=only, room=room, sending=list(sending), opens=CIRCUIT_OPENS, lease=lease
            )
        found = (Delivery(**dict(zip(CLAIMED, row, strict=True))) for row in rows)
        claimed = sorted(found, key=lambda one: one.id)
        if claimed:
            crash_points.reach("leased", [one.execution_id for one in claimed])
        lost = [one for one in claimed if one.attempts > MAX_ATTEMPTS]
        if not lost:
            return claimed
        why = f"given up after {MAX_ATTEMPTS} attempts: its process ended or hung in the last one"
        record([Result(one, DeliveryOutcome.LOST, why) for one in lost])
        if len(lost) < len(claimed):
            return [one for one in claimed if one.attempts <= MAX_ATTEMPTS]


def record(results: Sequence[Result]) -> list[Ended]:
    """Record results in one statement. A result of a claim that was overtaken by another one records nothing. If
    the process dies before, the deliveries are sent once more under the same id."""
    if not results:
        return []
    crash_points.reach("answered", [one.claimed.execution_id for one in results])
    with absence_translated(), transaction.atomic():
        rows = run(
            "record_results",
            subscriptions=sorted({one.claimed.subscription_id for one in results}),
            ids=[one.claimed.id for one in results],
            attempts=[one.claimed.attempts for one in results],
            outcomes=[str(one.outcome) for one in results],
            delays=[one.delay for one in results],
            errors=[one.error for one in results],
            answered=[one.answered for one in results],
            max_attempts=MAX_ATTEMPTS,
            max_age=pacing.DELIVER_MAX_AGE_SECONDS,
            opens=CIRCUIT_OPENS,
            most_pause=MAX_CIRCUIT_PAUSE,
        )
        ended = [Ended(*row) for row in rows]
        unsent = {one.claimed.id for one in results if one.outcome == DeliveryOutcome.UNSENT}
        counts = Counter(
            "retried" if one.state == State.PENDING else one.state for one in ended if one.id not in unsent
        )
        counters.add({("deliveries", f"result={result}"): count for result, count in counts.items()})
    crash_points.reach("recorded", [one.claimed.execution_id for one in results])
    if dead := [one for one in ended if one.state == State.DEAD]:
        signals.deliveries_died.send(sender=record, deliveries=dead)
    return ended


def by_subscription(rows: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Have an index find the deliveries of an execution: it begins with the subscription."""
    return rows.filter(subscription_id__in=Subscription.objects.values("pk"))


def expire(before: Any) -> int:
    """Turn some deliveries that were due before that moment into dead letters: they could not be sent since then.
    Return how many. An error of an earlier attempt stays."""
    old = Delivery.objects.filter(state=State.PENDING, next_at__lt=before).order_by("pk")[:EXPIRED_AT_ONCE]
    away = "nothing was sent: the receiver was away"
    return len(record([Result(one, DeliveryOutcome.DEAD, one.last_error or away) for one in old]))


def read_changes(claimed: Sequence[Delivery]) -> dict[int, Change]:
    """Return the change of each delivery, by the delivery's id, with one statement for all of them.

    Status, revision and time are those of the change; all else is as it is now. Of an execution that was deleted
    only the change is known.
    """
    if not claimed:
        return {}
    with absence_translated():
        rows = run(
            "read_changes",
            ids=sorted({one.execution_id for one in claimed}),
            most=MAX_FAILURES,
            most_text=MAX_MESSAGE,
            most_attributes=MAX_ATTRIBUTES,
        )
    known = {pk: _told(dict(zip(COLUMNS, row, strict=True))) for pk, *row in rows}
    return {
        one.id: Change(
            id=one.message_id,
            execution_id=one.execution_id,
            vendor_type=one.vendor_type,
            revision=one.revision,
            from_status=one.from_status,
            to_status=one.to_status,
            at=one.changed_at,
            **known.get(one.execution_id, {"is_deleted": True}),
        )
        for one in claimed
    }


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return row | {
        "extra_attrs": row["extra_attrs"] and json.loads(row["extra_attrs"]),
        "counts": json.loads(row["counts"]),
        "first_failures": tuple(Failure(**one) for one in json.loads(row["first_failures"])),
    }


def resend(delivery_ids: Iterable[int]) -> int:
    """Make these dead deliveries pending again, as if they were new; return how many were dead. They may arrive
    after later changes of their executions. A row that another transaction has locked is being sent again or
    deleted there, so it is left."""
    with transaction.atomic():
        dead = Delivery.objects.filter(pk__in=list(delivery_ids), state=State.DEAD)
        free = dead.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True)
        count = Delivery.objects.filter(pk__in=list(free)).update(
            state=State.PENDING, attempts=0, next_at=Now(), ended_at=None, created_at=Now()
        )
        tell_changes_written_after_commit()
    return count


def resend_all(subscription_id: int | None = None) -> int:
    """Send all dead letters of a subscription again, or of all; return how many, 100,000 at most. Each page
    is one transaction. The pages go by the id, so a delivery that dies again behind them is not sent twice."""
    dead = Delivery.objects.filter(state=State.DEAD).order_by("pk")
    if subscription_id is not None:
        dead = dead.filter(subscription_id=subscription_id)
    total, after = 0, 0
    while total < MOST and (ids := list(dead.filter(pk__gt=after).values_list("pk", flat=True)[:PAGE])):
        total += resend(ids)
        after = ids[-1]
    return total
