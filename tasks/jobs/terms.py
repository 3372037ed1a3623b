"""Terms: what `start` was told about an execution as a whole.

The row is written in the transaction that makes the execution, and deleted with it. An execution for which nothing
of this was asked has no row.

`once`: the unique constraint decides which of several starts with one key makes the execution. The others wait for
its commit and find the execution. What follows from a failure or the deadline is carried out by consequences.py.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from harbor_refresh.executions.database import violates
from harbor_refresh.executions.errors import Contended, Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.text import is_text, shown
from harbor_refresh.tasks.jobs.starting.options import LIMIT, WITHIN_A_YEAR, Takes, moment_of, refuse
from harbor_refresh.tasks.models.terms import Terms

MAX_ONCE = Terms._meta.get_field("once").max_length or 0


def _is_deadline(value: Any) -> bool:
    if isinstance(value, str | datetime):
        return WITHIN_A_YEAR.accepts(value) and moment_of(value) > datetime.now(UTC)
    return LIMIT.accepts(value)


DEADLINE = Takes(
    f"{LIMIT.what}, or a moment that is still to come, at most a year from now, as a datetime or ISO 8601 text",
    _is_deadline,
)


def terms_of(
    once: str = "",
    on_failure: str = "continue",
    deadline: float | str | datetime | None = None,
    *,
    tells_first_failure: bool = False,
) -> Terms | None:
    """Return the terms of a new execution; None if nothing is asked of it.

    Args:
        once: The key of the execution among those of its vendor type; empty: it has none.
        on_failure: What becomes of the rest when a task has failed: it may `continue`, or `stop`.
        deadline: Seconds from now, or a moment, at which the rest is stopped.
        tells_first_failure: Whether it has a callback for the first failed task.
    """
    if on_failure not in ("continue", "stop"):
        raise Refused(f'on_failure takes "continue" or "stop", and got {shown(on_failure)}')
    if not is_text(once, MAX_ONCE):
        raise Refused(f"once takes text of at most {MAX_ONCE} characters, and got {shown(once)}")
    refuse("start", "deadline", deadline, DEADLINE)
    if isinstance(deadline, str | datetime):
        moment: datetime | None = moment_of(deadline)
    else:
        moment = None if deadline is None else datetime.now(UTC) + timedelta(seconds=deadline)
    stops = on_failure == "stop"
    if not (once or moment or stops or tells_first_failure):
        return None
    return Terms(
        once=once or None, stops_on_failure=stops, tells_first_failure=tells_first_failure, deadline=moment
    )


def create_with(terms: Terms | None, vendor_type: str, make: Callable[[], Execution]) -> tuple[Execution, bool]:
    """Make an execution with these terms, in the caller's transaction. Return it, and whether it is new: if there
    is one of this vendor type with the same key, return that one and make nothing."""
    if terms is None:
        return make(), True
    with_key = Execution.objects.filter(terms__vendor_type=vendor_type, terms__once=terms.once)
    if terms.once and (found := with_key.first()):
        return found, False
    try:
        with transaction.atomic():
            terms.execution, terms.vendor_type = make(), vendor_type
            terms.save(force_insert=True)
    except IntegrityError as exc:
        if not violates(exc, "terms_once"):
            raise
        if found := with_key.first():
            return found, False
        raise Contended from exc  # it was deleted at this moment
    return terms.execution, True


def described(execution: Execution) -> str:
    """Say in a line what the terms of an execution are; empty if it has none."""
    terms = Terms.objects.filter(pk=execution.pk).first()
    if terms is None:
        return ""
    parts = [f"once: {terms.once}"] if terms.once else []
    if terms.deadline:
        parts.append(f"deadline: {timezone.localtime(terms.deadline):%Y-%m-%d %H:%M:%S}")
    if terms.stops_on_failure:
        parts.append("a failed job stops the rest")
    if terms.tells_first_failure:
        parts.append("a callback is told of the first failed job")
    return "; ".join(parts)
