"""Claim due deliveries, and record what became of them."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions import crash_points, pacing
from harbor_refresh.executions.database import absence_translated, run
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news import counters, signals

#: So many failures in a row open the circuit of a webhook.
CIRCUIT_OPENS = 5
#: The longest pause of an open circuit, in seconds.
MAX_CIRCUIT_PAUSE = 600.0
#: A delivery is tried at most so often. One that fails with a result is too old before that, because the pauses
#: between its attempts grow. So this limit is for attempts that leave no result: their process ended, or hung.
MAX_ATTEMPTS = 30
#: Deliveries that one statement makes dead because of their age, for each subscription.
EXPIRED_AT_ONCE = 1_000


@dataclass(frozen=True)
class Claimed:
    """A delivery that this process may send until its lease ends. `attempt` is the token of the claim."""

    id: int
    subscription_id: int
    execution_id: int
    vendor_type: str
    revision: int
    from_status: str
    to_status: str
    changed_at: datetime
    attempt: int

    @property
    def message_id(self) -> str:
        """The same for every attempt, so that a receiver knows what it has had."""
        return f"status_{self.execution_id}_{self.revision}_{self.subscription_id}"


class Outcome(StrEnum):
    DELIVERED = "delivered"
    DEAD = "dead"
    AGAIN = "again"
    UNSENT = "unsent"
    LOST = "lost"


@dataclass(frozen=True)
class Result:
    """What became of a claimed delivery. `delay`: seconds until it is tried again, if it is. `answered`: whether
    the receiver works, or None if nothing is known of it."""

    claimed: Claimed
    outcome: Outcome
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
    error: str


def with_due() -> QuerySet[Subscription]:
    """Return the subscriptions that have something due: webhooks whose circuit lets a request through, and
    handlers that no worker runs."""
    due = Delivery.objects.filter(subscription=OuterRef("pk"), state=State.PENDING, next_at__lte=Now())
    is_free = Q(retry_at=None) | Q(retry_at__lte=Now())
    return Subscription.objects.filter(is_free, Exists(due), enabled=True, missing_since=None)


def claim(room: int, lease: float, *, only: int | None = None, sending: Sequence[int] = ()) -> list[Claimed]:
    """Claim up to `room` due deliveries of each webhook, or of the handler `only`. `sending` are the subscriptions
    of deliveries that the caller is sending: each of them takes one of the room. If the process dies afterwards,
    they are due again when the lease ends.

    What was tried as often as it may be is given up, because its last process ended or hung in it, and the
    deliveries behind it are claimed instead. If that last attempt ends after all, its claim was overtaken, and it
    records nothing.
    """
    while True:
        with absence_translated():
            rows = run(
                "claim_deliveries", only=only, room=room, sending=list(sending), opens=CIRCUIT_OPENS, lease=lease
            )
        claimed = sorted((Claimed(*row) for row in rows), key=lambda one: one.id)
        if claimed:
            crash_points.reach("leased", [one.execution_id for one in claimed])
        lost = [one for one in claimed if one.attempt > MAX_ATTEMPTS]
        if not lost:
            return claimed
        why = f"given up after {MAX_ATTEMPTS} attempts: its process ended or hung in the last one"
        record([Result(one, Outcome.LOST, why) for one in lost])
        if len(lost) < len(claimed):
            return [one for one in claimed if one.attempt <= MAX_ATTEMPTS]


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
            attempts=[one.claimed.attempt for one in results],
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
        _count(ended, {one.claimed.id for one in results if one.outcome == Outcome.UNSENT})
    crash_points.reach("recorded", [one.claimed.execution_id for one in results])
    return _told_of_the_dead(ended)


def expire() -> list[Ended]:
    """Turn deliveries that were due for too long into dead letters."""
    max_age = pacing.DELIVER_MAX_AGE_SECONDS
    with absence_translated(), transaction.atomic():
        rows = run("expire_deliveries", max_age=max_age, most=EXPIRED_AT_ONCE)
        ended = [Ended(*row) for row in rows]
        _count(ended)
    return _told_of_the_dead(ended)


def _count(ended: Sequence[Ended], unsent: Collection[int] = ()) -> None:
    """Count these results, in their transaction. What was claimed and not sent has no result."""
    results = Counter("retried" if one.state == "pending" else one.state for one in ended if one.id not in unsent)
    counters.add({("deliveries", f"result={result}"): count for result, count in results.items()})


def _told_of_the_dead(ended: list[Ended]) -> list[Ended]:
    if dead := [one for one in ended if one.state == Outcome.DEAD]:
        signals.deliveries_died.send(sender=record, deliveries=dead)
    return ended
