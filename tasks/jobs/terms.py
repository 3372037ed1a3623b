"""Terms: what `start` was told about an execution as a whole.

The row is written in the transaction that makes the execution, and deleted with it. An execution for which nothing
of this was asked has no row.

`once`: the unique constraint decides which of several starts with one key makes the execution. The others wait for
its commit and find the execution. What follows from a failure or the deadline is carried out by consequences.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
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

CONTINUE, STOP = "continue", "stop"
MAX_ONCE = Terms._meta.get_field("once").max_length or 0


@dataclass(frozen=True)
class NewTerms:
    """`once`: the key of the execution among those of its vendor type; empty: it has none. `on_failure`: what
    becomes of the rest when a task has failed. `tells_first_failure`: it has a callback for that. `deadline`:
    seconds from now, or a moment, at which the rest is stopped."""

    once: str = ""
    on_failure: str = CONTINUE
    tells_first_failure: bool = False
    deadline: float | str | datetime | None = None

    def __post_init__(self) -> None:
        if self.on_failure not in (CONTINUE, STOP):
            raise Refused(f'on_failure takes "{CONTINUE}" or "{STOP}", and got {shown(self.on_failure)}')
        if not is_text(self.once, MAX_ONCE):
            raise Refused(f"once takes text of at most {MAX_ONCE} characters, and got {shown(self.once)}")
        refuse("start", "deadline", self.deadline, DEADLINE)

    @property
    def moment(self) -> datetime | None:
        """The deadline as a moment."""
        if self.deadline is None or isinstance(self.deadline, str | datetime):
            return None if self.deadline is None else moment_of(self.deadline)
        return datetime.now(UTC) + timedelta(seconds=self.deadline)


def _is_deadline(value: Any) -> bool:
    if isinstance(value, str | datetime):
        return WITHIN_A_YEAR.accepts(value) and moment_of(value) > datetime.now(UTC)
    return LIMIT.accepts(value)


DEADLINE = Takes(
    f"{LIMIT.what}, or a moment that is still to come, at most a year from now, as a datetime or ISO 8601 text",
    _is_deadline,
)


def started(once: str, vendor_type: str) -> Execution | None:
    """Return the execution of this vendor type that was started under the key."""
    return Execution.objects.filter(terms__vendor_type=vendor_type, terms__once=once).first() if once else None


def create_with(new: NewTerms, make: Callable[[], Execution]) -> tuple[Execution, bool]:
    """Make an execution with these terms, in the caller's transaction. Return it, and whether it is new: if there
    is one with the same key, made by another transaction, return that one and make nothing."""
    if new == NewTerms():
        return make(), True
    try:
        with transaction.atomic():
            execution = make()
            Terms.objects.create(
                execution=execution,
                vendor_type=execution.vendor_type,
                once=new.once or None,
                stops_on_failure=new.on_failure == STOP,
                tells_first_failure=new.tells_first_failure,
                deadline=new.moment,
            )
    except IntegrityError as exc:
        if not violates(exc, "terms_once"):
            raise
        if found := started(new.once, execution.vendor_type):
            return found, False
        raise Contended from exc  # it was deleted at this moment
    return execution, True


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
