"""Consequences: what the terms of an execution say is carried out when one of its tasks has failed, or when its
deadline has passed.

A trigger notes each failure in the transaction in which it happens (sql/schema/note_failures.sql). `carry_out`
takes the notes: it has callbacks told of the first failure (`on_first_error`), and stops the rest
(`on_failure="stop"`). It also stops what has a deadline that has passed. `tasks.recover_stale` calls it, which
beat sends, and each worker that finds something due.

If the process dies before the commit, then the note, or the deadline, is still there. If two processes do it at
once, then the second leaves the execution to the first.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.executions.lifecycle.stops import stop_many
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news import callbacks
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.models.terms import Failure, Terms
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.without_redis import agenda, mode

log = logging.getLogger("harbor_refresh")

#: Executions that one look finds.
PAGE = 100
FAILED, OVERDUE = "a job of its execution has failed", "its deadline passed"


def carry_out() -> int:
    """Carry out what is due; return for how many executions. One that the database refuses holds up no other: the
    next pass tries it again."""
    return _each(_with_failures, _after_failures) + _each(_overdue, _after_deadline)


def have_carried_out() -> None:
    """Have a worker carry out what is due."""
    if mode.is_on():
        carry_out()
    else:
        with suppress(Exception):  # any error of the broker's client, because the schedule asks as well
            wakeup.send("tasks.recover_stale")


agenda.consequences.append(carry_out)


def _with_failures() -> QuerySet[Any, int]:
    return Failure.objects.order_by("execution_id").values_list("execution_id", flat=True).distinct()


def _overdue() -> QuerySet[Any, int]:
    found = Terms.objects.filter(deadline__lte=Now(), is_over=False)
    return found.order_by("deadline").values_list("execution_id", flat=True)  # the order of its index


def _each(find: Callable[[], QuerySet[Any, int]], do: Callable[[int], None]) -> int:
    count = 0
    left: list[int] = []
    while found := list(find().exclude(execution_id__in=left)[:PAGE]):
        for execution_id in found:
            try:
                with transaction.atomic():
                    if _hold(execution_id):
                        do(execution_id)
                        count += 1
                    else:
                        left.append(execution_id)
            except RefreshError:
                raise
            except Exception:
                log.error("What the terms of execution %d say cannot be done yet", execution_id, exc_info=True)
                left.append(execution_id)
    return count


def _hold(execution_id: int) -> bool:
    """Lock the execution, before its terms and its tasks, as everywhere. False if another transaction has it,
    which may be a pass that stops a million tasks: the next pass looks again. A deleted one needs no lock."""
    rows = Execution.objects.filter(pk=execution_id)
    return rows.select_for_update(no_key=True, skip_locked=True).first() is not None or not rows.exists()


def _after_failures(execution_id: int) -> None:
    """If all that had failed runs again, nothing is stopped."""
    Failure.objects.filter(execution_id=execution_id).delete()
    terms = Terms.objects.filter(pk=execution_id).first()
    if terms is None:
        return
    if terms.tells_first_failure and terms.first_failed_at is None:
        callbacks.tell_first_failure(execution_id)
        Terms.objects.filter(pk=execution_id).update(first_failed_at=Now())
    if terms.stops_on_failure and Task.objects.filter(execution_id=execution_id, status=Status.ERROR).exists():
        stop_many([execution_id], FAILED)


def _after_deadline(execution_id: int) -> None:
    """An execution that has ended keeps its status."""
    if Terms.objects.filter(pk=execution_id, is_over=False).update(is_over=True):
        stop_many([execution_id], OVERDUE)
