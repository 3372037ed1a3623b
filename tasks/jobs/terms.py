"""Terms: what `start` was told about an execution as a whole, and what follows from that.

The row is written in the transaction that makes the execution, and deleted with it. An execution for which nothing
of this was asked has no row.

`once`: the unique constraint decides which of several starts with one key makes the execution. The others wait for
its commit and find the execution.

A trigger notes each failure in the transaction in which it happens (sql/schema/note_failures.sql). `carry_out`
takes the notes: it has callbacks told of the first failure (`on_first_error`), and stops the rest
(`on_failure="stop"`), but for clean-ups. It also stops what has a deadline that has passed. Each worker calls it
that finds something due, and `tasks.recover_stale`. If the process dies before the commit, then the note, or the
deadline, is still there. If two processes do it at once, then the second leaves the execution to the first.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from harbor_refresh.executions.database import violates
from harbor_refresh.executions.errors import Contended, RefreshError, Refused
from harbor_refresh.executions.lifecycle.stops import stop_many
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news import callbacks
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import is_text, shown
from harbor_refresh.tasks.jobs.outcomes import find_behind
from harbor_refresh.tasks.jobs.running import eager
from harbor_refresh.tasks.jobs.starting.options import LIMIT, WITHIN_A_YEAR, Takes, moment_of, refuse
from harbor_refresh.tasks.models.job import Need
from harbor_refresh.tasks.models.terms import Failure, Terms
from harbor_refresh.tasks.without_redis import agenda, mode

log = logging.getLogger("harbor_refresh")

#: Executions that one look finds, of each kind.
PAGE = 100
FAILED, OVERDUE = "a job of its execution has failed", "its deadline passed"
MAX_ONCE = Terms._meta.get_field("once").max_length or 0


DEADLINE = Takes(
    f"{LIMIT.what}, or a moment that is still to come, at most a year from now, as a datetime or ISO 8601 text",
    lambda value: LIMIT.accepts(value) or WITHIN_A_YEAR.accepts(value),
)


def terms_of(
    once: str = "",
    on_failure: str = "continue",
    deadline: float | str | datetime | None = None,
    *,
    tells_first_failure: bool = False,
    tenant: str = "",
) -> Terms | None:
    """Return the terms of a new execution (`start` describes them); None if nothing is asked of it."""
    if on_failure not in ("continue", "stop"):
        raise Refused(f'on_failure takes "continue" or "stop", and got {shown(on_failure)}')
    if not is_text(once, MAX_ONCE):
        raise Refused(f"once takes text of at most {MAX_ONCE} characters, and got {shown(once)}")
    refuse("start", "deadline", deadline, DEADLINE)
    now = datetime.now(UTC)
    if isinstance(deadline, str | datetime):
        moment: datetime | None = moment_of(deadline)
    else:
        moment = None if deadline is None else now + timedelta(seconds=deadline)
    stops = on_failure == "stop"
    if not (once or moment or stops or tells_first_failure or tenant):
        return None
    return Terms(
        once=once or None,
        stops_on_failure=stops,
        tells_first_failure=tells_first_failure,
        tenant=tenant,
        deadline=moment,
        is_over=moment is not None and moment <= now,
    )


def create_with(terms: Terms | None, vendor_type: str, make: Callable[[], Execution]) -> tuple[Execution, bool]:
    """Make an execution with these terms, in the caller's transaction. Return it, and whether it is new: if there
    is one of this vendor type with the same key, return that one and make nothing. Raises Refused for a new one
    whose deadline has passed."""
    if terms is None:
        return make(), True
    with_key = Execution.objects.filter(terms__vendor_type=vendor_type, terms__once=terms.once)
    if terms.once and (found := with_key.first()):
        return found, False
    if terms.is_over:
        raise Refused(f"start: deadline takes {DEADLINE.what}, and got {shown(terms.deadline)}")
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
        local = timezone.localtime(terms.deadline) if timezone.is_aware(terms.deadline) else terms.deadline
        parts.append(f"deadline: {local:%Y-%m-%d %H:%M:%S}")
    if terms.stops_on_failure:
        parts.append("a failed job stops the rest")
    if terms.tells_first_failure:
        parts.append("a callback is told of the first failed job")
    if terms.tenant:
        parts.append(f"its turns are those of {terms.tenant}")
    return "; ".join(parts)


def carry_out() -> int:
    """Carry out what is due; return for how many executions. One that the database refuses holds up no other: the
    next pass tries it again."""
    count = 0
    left: list[int] = []
    while found := _due(but=left):
        for execution_id in found:
            are_done = [_is_done(step, execution_id) for step in (_after_failures, _after_deadline)]
            if all(are_done):
                count += 1
            else:
                left.append(execution_id)
    if count and mode.is_eager():
        eager.put_next()  # a stop may be what a clean-up has waited for
    return count


def _is_done(step: Callable[[int], None], execution_id: int) -> bool:
    """Carry out one step in its own transaction, so that a failure holds up no deadline."""
    try:
        with transaction.atomic():
            if is_held := _hold(execution_id):
                step(execution_id)
            return is_held
    except RefreshError:
        raise
    except Exception:
        log.error("What the terms of execution %d say cannot be done yet", execution_id, exc_info=True)
        return False


agenda.consequences.append(carry_out)


def _due(but: list[int]) -> list[int]:
    """Find executions with a failure, or with a deadline that has passed."""
    failed = Failure.objects.exclude(execution_id__in=but).order_by("execution_id").distinct()
    overdue = Terms.objects.filter(deadline__lte=Now(), is_over=False).exclude(pk__in=but)
    found = failed, overdue.order_by("deadline")  # the order of its index
    return sorted({pk for rows in found for pk in rows.values_list("execution_id", flat=True)[:PAGE]})


def _hold(execution_id: int) -> bool:
    """Lock the execution, before its terms and its tasks, as everywhere. False if another transaction has it,
    which may be a pass that stops a million tasks: the next pass looks again. A deleted one needs no lock."""
    rows = Execution.objects.filter(pk=execution_id)
    return rows.select_for_update(no_key=True, skip_locked=True).first() is not None or not rows.exists()


def _after_failures(execution_id: int) -> None:
    """If all that had failed runs again, nothing is stopped."""
    has_failed, _ = Failure.objects.filter(execution_id=execution_id).delete()
    its = Terms.objects.filter(pk=execution_id)
    terms = its.first() if has_failed else None
    if terms is None:
        return
    if terms.tells_first_failure and terms.first_failed_at is None:
        callbacks.tell_first_failure(execution_id)
        its.update(first_failed_at=Now())
    if terms.stops_on_failure and Task.objects.filter(execution_id=execution_id, status=Status.ERROR).exists():
        stop_many([execution_id], FAILED, clean_ups)


def clean_ups(execution_ids: list[int]) -> list[int]:
    """Return the jobs that run even if others fail, and those behind them, such as the rest of a chain."""
    tasks = Task.objects.filter(execution_id__in=execution_ids).values("pk")
    its = {*Need.objects.filter(job__in=tasks, even_if_failed=True).values_list("job", flat=True)}
    return [*its | find_behind(its)]


def _after_deadline(execution_id: int) -> None:
    """An execution that has ended keeps its status."""
    if Terms.objects.filter(pk=execution_id, deadline__lte=Now(), is_over=False).update(is_over=True):
        stop_many([execution_id], OVERDUE)
