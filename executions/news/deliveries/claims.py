"""Claim due deliveries, read what they tell, record what became of them, and send dead letters again."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions.conf import pacing
from harbor_refresh.executions.database import absence_translated, allow_long_statements, among, run
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news import counters, signals
from harbor_refresh.executions.news.after_commit import tell_changes_written_after_commit
from harbor_refresh.executions.news.handlers import Change, Failure

#: So many failures in a row open the circuit of a webhook.
CIRCUIT_OPENS = 5
#: The pause of an open circuit, in seconds.
MIN_CIRCUIT_PAUSE, MAX_CIRCUIT_PAUSE = 5.0, 600.0
#: A delivery is tried at most so often. One that fails with a result is too old before that, because the pauses
#: between its attempts grow. So this limit is for attempts that leave no result: their process ended, or hung.
MAX_ATTEMPTS = 30
#: A later claim of a webhook has a lease of up to so many first ones.
LONGEST_LEASE = 10
#: Deliveries that one statement makes dead because of their age.
EXPIRED_AT_ONCE = 1_000
#: What is told of a change: so many failures of so long messages, and no longer extra_attrs.
MAX_FAILURES = 5
MAX_MESSAGE = 500
MAX_ATTRIBUTES = 10_000
#: What read_changes.sql returns after the id, as fields of a Change.
COLUMNS = (  # noqa: SIM905  # a list would be ten lines
    "vendor_id vendor_key status_message trigger extra_attrs start_time update_time end_time counts first_failures"
).split()
#: Dead letters that one call sends again. The caller may call again.
MOST = 100_000


@dataclass(frozen=True)
class Result:
    """What became of a claimed delivery: its new state, and if it stays pending, `delay` seconds until it is tried
    again. `answered`: whether the receiver works, or None if nothing is known of it. Unless it `is_attempt`, the
    attempt of the claim does not count."""

    claimed: Delivery
    state: State
    error: str = ""
    delay: float = 0.0
    answered: bool | None = None
    is_attempt: bool = True


def with_due() -> QuerySet[Subscription]:
    """Return the subscriptions that have something due: webhooks whose circuit lets a request through, and
    handlers that no worker runs."""
    due = Delivery.objects.filter(subscription=OuterRef("pk"), state=State.PENDING, next_at__lte=Now())
    is_free = Q(retry_at=None) | Q(retry_at__lte=Now())
    return Subscription.objects.filter(is_free, Exists(due), enabled=True, missing_since=None)


def claim(room: int, lease: float, *, only: int | None = None, sending: Sequence[int] = ()) -> list[Delivery]:
    """Claim up to `room` due deliveries of each webhook, or of the handler `only`. `sending` are the subscriptions
    of deliveries that the caller is sending: each of them takes one of the room. If the process dies afterwards,
    they are due again when the lease ends (claim_deliveries.sql). The caller may send them until then. The claim's
    token is `attempts`, with `created_at`: a dead letter that is sent again has both anew.

    What was tried as often as it may be is given up, because its last process ended or hung in it, and the
    deliveries behind it are claimed instead. If that last attempt ends after all, its claim was overtaken, and it
    records nothing.
    """
    while True:
        with absence_translated():
            values = {"only": only, "room": room, "sending": list(sending), "opens": CIRCUIT_OPENS, "lease": lease}
            tokens = dict(run("deliveries/claim_deliveries", longest=LONGEST_LEASE, **values))
            rows = Delivery.objects.filter(pk__in=list(tokens)).select_related("subscription").order_by("pk")
            claimed = [one for one in rows if one.attempts == tokens[one.pk]]
            probed = {one.subscription_id for one in claimed if one.subscription.failures >= CIRCUIT_OPENS}
            Subscription.objects.filter(pk__in=probed).update(retry_at=Now() + timedelta(seconds=lease))
        if claimed:
            crash_points.reach("leased", [one.execution_id for one in claimed])
        kept = [one for one in claimed if one.attempts <= MAX_ATTEMPTS]
        why = f"given up after {MAX_ATTEMPTS} attempts: its process ended or hung in the last one"
        record([Result(one, State.DEAD, why, is_attempt=False) for one in claimed if one.attempts > MAX_ATTEMPTS])
        if kept or not claimed:
            return kept


def record(results: Sequence[Result]) -> list[Delivery]:
    """Record results in one transaction; return the deliveries of those that were recorded. A result of a claim
    that was overtaken by another one records nothing. If the process dies before, the deliveries are sent once
    more under the same id.

    Rows are locked in id order: first the subscriptions, which can then not be deleted, then the deliveries.
    """
    if not results:
        return []
    crash_points.reach("answered", [one.claimed.execution_id for one in results])
    with absence_translated(), transaction.atomic():
        receivers = Subscription.objects.select_for_update(no_key=True).annotate(now=Now()).order_by("pk")
        known = receivers.in_bulk({one.claimed.subscription_id for one in results})
        by_token = {(one.claimed.pk, one.claimed.attempts, one.claimed.created_at): one for one in results}
        ids = [one.claimed.pk for one in results]
        pending = Delivery.objects.select_for_update(no_key=True).filter(pk__in=ids, state=State.PENDING)
        held = pending.order_by("pk").values_list("pk", "attempts", "created_at")
        given = {token[0]: by_token[token] for token in held if token in by_token}
        recorded = [one.claimed for one in given.values()]
        answers, counts = defaultdict(list), Counter[str]()
        for row in recorded:
            one, receiver = given[row.pk], known[row.subscription_id]
            row.subscription, row.state = receiver, _state_after(row, one, receiver.now)
            if one.answered is not None:
                answers[receiver].append(one.answered)
            if row.state != State.PENDING or one.error:
                row.last_error = one.error
                counts["retried" if row.state == State.PENDING else str(row.state)] += 1
        run(
            "deliveries/record_results",
            ids=[row.pk for row in recorded],
            states=[str(row.state) for row in recorded],
            attempts=[row.attempts if given[row.pk].is_attempt else row.attempts - 1 for row in recorded],
            errors=[row.last_error for row in recorded],
            delays=[given[row.pk].delay if row.state == State.PENDING else None for row in recorded],
        )
        for receiver, of_one in answers.items():
            _move_circuit(receiver, of_one)
        counters.add({("deliveries", f"result={result}"): count for result, count in counts.items()})
    crash_points.reach("recorded", [one.claimed.execution_id for one in results])
    if dead := [row for row in recorded if row.state == State.DEAD]:
        signals.deliveries_died.send(sender=record, deliveries=dead)
    return recorded


def _state_after(row: Delivery, result: Result, now: datetime) -> State:
    """Return the state after this result. What failed so often, or is too old at its next attempt, is dead."""
    if result.state == State.PENDING and result.error:
        age = (now - row.created_at).total_seconds() + result.delay
        if row.attempts >= MAX_ATTEMPTS or age > pacing.DELIVER_MAX_AGE_SECONDS:
            return State.DEAD
    return result.state


def _move_circuit(receiver: Any, answers: Sequence[bool]) -> None:
    """Note whether this webhook works. After CIRCUIT_OPENS failures in a row nothing is sent to it for half of the
    time since the first, so the pause grows by half with each probe that fails."""
    if any(answers) and not receiver.failures:
        return
    receiver.retry_at = None
    if any(answers):
        receiver.failures, receiver.failing_since = 0, None
    else:
        receiver.failures += len(answers)
        receiver.failing_since = receiver.failing_since or receiver.now
        if receiver.failures >= CIRCUIT_OPENS:
            half = (receiver.now - receiver.failing_since).total_seconds() / 2
            pause = min(MAX_CIRCUIT_PAUSE, max(MIN_CIRCUIT_PAUSE, half)) * random.uniform(0.75, 1)  # noqa: S311
            receiver.retry_at = receiver.now + timedelta(seconds=pause)
    receiver.save(update_fields=["failures", "failing_since", "retry_at"])


def by_subscription(rows: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Have an index find the deliveries of an execution: it begins with the subscription."""
    return rows.filter(subscription_id__in=Subscription.objects.values("pk"))


def expire(before: Any) -> int:
    """Turn some deliveries that were due before that moment into dead letters: they could not be sent since then.
    Return how many. An error of an earlier attempt stays."""
    old = Delivery.objects.filter(state=State.PENDING, next_at__lt=before).order_by("pk")[:EXPIRED_AT_ONCE]
    down = "nothing was sent: the receiver was down"
    return len(record([Result(one, State.DEAD, one.last_error or down) for one in old]))


def read_changes(claimed: Sequence[Delivery]) -> dict[int, Change]:
    """Return the change of each delivery, by the delivery's id, with one statement for all of them.

    Status, revision and time are those of the change; all else is as it is now. Of an execution that was deleted
    only the change is known.
    """
    if not claimed:
        return {}
    with absence_translated():
        rows = run(
            "deliveries/read_changes",
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


def resend(rows: QuerySet[Delivery]) -> int:
    """Make the dead ones of these deliveries pending again, as if they were new; return how many, 100,000 at most.
    They are sent after the commit of the caller's transaction, and may arrive after later changes of their
    executions. A row that another transaction has locked is being sent again or deleted there, so it is left."""
    with transaction.atomic():
        allow_long_statements()
        dead = rows.filter(state=State.DEAD).order_by("pk").values_list("pk", flat=True)
        ids = list(dead.select_for_update(no_key=True, skip_locked=True)[:MOST])
        Delivery.objects.filter(among(ids)).update(
            state=State.PENDING, attempts=0, next_at=Now(), ended_at=None, created_at=Now()
        )
        tell_changes_written_after_commit()
    return len(ids)
