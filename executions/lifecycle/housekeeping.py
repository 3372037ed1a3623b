"""Housekeeping: the tables whose old rows the sweep deletes.

A table is a line of HOUSEKEEPING: a name, a function and an age. The function deletes one bounded batch of the
rows from before the moment that it is given, and returns how many; the sweep calls it until it returns 0. It must
not delete a row that is still needed, whatever its age.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile
from operator import itemgetter
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.conf import pacing
from harbor_refresh.executions.database import among, delete_first
from harbor_refresh.executions.models import (
    Callback,
    DeletedTask,
    Delivery,
    Execution,
    IdempotencyKey,
    Quarantine,
    StatusChange,
    Subscription,
)
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news import audit
from harbor_refresh.executions.news.deliveries.claims import expire

#: Rows that one transaction deletes.
BATCH = 1_000

#: The newest status changes of an execution that stay, whatever their age: more than a person reads.
HISTORY_KEPT = 1_000
HISTORY_PAGE = 5_000
#: Long histories that one transaction shortens.
AT_ONCE = 10

Forget = Callable[[Any], int]


@dataclass(frozen=True)
class Chore:
    name: str
    forget: Forget
    age: timedelta
    deletes: bool = True

    def page(self, _: int = 0) -> tuple[int, int | None]:
        """Do one batch; return how many rows it deleted, and None after the last one. The moment is one of the
        database."""
        count = self.forget(Now() - self.age)
        return count if self.deletes else 0, 0 if count else None


def older(rows: QuerySet[Any], column: str) -> Forget:
    """Return a function that deletes a batch of the oldest rows by that column, which needs an index."""
    return lambda before: delete_first(rows.filter(**{f"{column}__lt": before}).order_by(column), BATCH)


def forget_old_secrets(before: Any) -> int:
    expired = Subscription.objects.filter(old_secret_ends_at__lt=before)
    return expired.update(old_secret="", old_secret_ends_at=None)


DELIVERED_OR_DEAD = Delivery.objects.exclude(state=State.PENDING)
HOUSEKEEPING: tuple[Chore, ...] = (
    # a sender tries again for minutes, and a key that is older is not worth its row
    Chore("idempotency keys", older(IdempotencyKey.objects.all(), "at"), timedelta(hours=24)),
    # no sender tries for longer to report about one task
    Chore("tombstones of tasks", older(DeletedTask.objects.all(), "at"), timedelta(days=7)),
    Chore("log of actions", audit.forget, timedelta(days=180)),
    Chore("overdue deliveries", expire, timedelta(seconds=pacing.DELIVER_MAX_AGE_SECONDS), deletes=False),
    # a dead letter can be sent again until then
    Chore("ended deliveries", older(DELIVERED_OR_DEAD, "ended_at"), timedelta(days=30)),
    Chore("old secrets of webhooks", forget_old_secrets, timedelta(0)),
    Chore("callbacks of deleted executions", older(Callback.objects.all(), "orphaned_at"), timedelta(days=60)),
)


def shorten_histories(age: timedelta, after_id: int) -> tuple[int, int | None]:
    """Delete the oldest changes of the next long histories, up to the first one that is too young or was not
    told; return how many, and the id to go on after.

    A history has one row for each revision, so only those with more than HISTORY_KEPT are looked at; attached, all
    are, because Harbor resets its revisions. The lock keeps an execution from being deleted meanwhile.
    """
    page = list(
        Execution.objects.filter(pk__gt=after_id).order_by("pk").values_list("pk", "revision")[:HISTORY_PAGE]
    )
    suspects = [pk for pk, revision in page if is_attached() or revision > HISTORY_KEPT]
    beyond = StatusChange.objects.filter(execution_id=OuterRef("pk"))[HISTORY_KEPT : HISTORY_KEPT + 1]
    long = Execution.objects.filter(among(suspects), Exists(beyond)).order_by("pk").values_list("pk", flat=True)
    total, locked = 0, list(long.select_for_update(skip_locked=True, no_key=True)[:AT_ONCE])
    for pk in locked:
        total += (count := _shorten(pk, age))
        if count == BATCH:
            return total, pk - 1
    if len(locked) == AT_ONCE:
        return total, locked[-1]
    return total, page[-1][0] if len(page) == HISTORY_PAGE else None


def _shorten(execution_id: int, age: timedelta) -> int:
    changes = StatusChange.objects.filter(execution_id=execution_id)
    limit = changes.order_by("-revision").values_list("revision", flat=True)[HISTORY_KEPT]
    is_old = ExpressionWrapper(Q(told=True, at__lt=Now() - age), BooleanField())
    oldest = changes.filter(revision__lte=limit).order_by("revision").values_list("revision", is_old)[:BATCH]
    deletable = [revision for revision, _ in takewhile(itemgetter(1), oldest)]
    if deletable:
        changes.filter(revision__lte=deletable[-1])._raw_delete(using=DEFAULT_DB_ALIAS)
    return len(deletable)


def forget_orphans(after_id: int) -> tuple[int, int | None]:
    """Delete our rows of executions that a running Harbor has deleted, which neither sees nor waits for them,
    among the next page of executions; return how many, and the id to go on after. A change that subscribers have
    not been told stays until they are. Harbor never uses an id again."""
    ours = StatusChange.objects.filter(told=True), Quarantine.objects.all()
    known: set[int] = set()
    for rows in ours:
        later = rows.filter(execution_id__gt=after_id).order_by("execution_id").distinct()
        known.update(later.values_list("execution_id", flat=True)[:HISTORY_PAGE])
    page = sorted(known)[:HISTORY_PAGE]
    gone = set(page).difference(Execution.objects.filter(among(page)).values_list("pk", flat=True))
    deleted = sum(rows.filter(among(gone, "execution_id"))._raw_delete(using=DEFAULT_DB_ALIAS) for rows in ours)
    return deleted, page[-1] if len(page) == HISTORY_PAGE else None
