"""Housekeeping: the tables whose old rows the sweep deletes.

A table is a line of HOUSEKEEPING: a name, a function and an age. The function deletes one bounded batch of the
rows from before the moment that it is given, and returns how many; the sweep calls it until it returns 0. It must
not delete a row that is still needed, whatever its age.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions.access import audit
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import delete_first, run
from harbor_refresh.executions.lifecycle.deletion import TOMBSTONES_KEPT
from harbor_refresh.executions.models import (
    Callback,
    DeletedTask,
    Delivery,
    IdempotencyKey,
    ReceivedMessage,
    Subscription,
)
from harbor_refresh.executions.models.notifications import State

#: Rows that one transaction deletes.
BATCH = 1_000

#: The newest status changes of an execution that stay, whatever their age: more than a person reads.
HISTORY_KEPT = 1_000
HISTORY_PAGE = 5_000

Forget = Callable[[Any], int]


@dataclass(frozen=True)
class Chore:
    name: str
    forget: Forget
    age: timedelta

    def do(self) -> int:
        """Delete one batch; return how many rows it deleted. The moment is one of the database's clock."""
        return self.forget(Now() - self.age)

    def page(self, _: int) -> tuple[int, int | None]:
        """Delete one batch, which begins at the oldest row; return how many, and None after the last batch."""
        deleted = self.do()
        return deleted, 0 if deleted else None


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
    Chore("tombstones of tasks", older(DeletedTask.objects.all(), "at"), TOMBSTONES_KEPT),
    Chore("ids of signed messages", older(ReceivedMessage.objects.all(), "at"), ReceivedMessage.KEPT),
    Chore("log of actions", audit.forget, timedelta(days=180)),
    # a dead letter can be sent again until then
    Chore("ended deliveries", older(DELIVERED_OR_DEAD, "ended_at"), timedelta(days=30)),
    Chore("old secrets of webhooks", forget_old_secrets, timedelta(0)),
    Chore("callbacks of deleted executions", older(Callback.objects.all(), "orphaned_at"), timedelta(days=60)),
)


def shorten_histories(age: timedelta, after_id: int) -> tuple[int, int | None]:
    """Delete the oldest changes of the next page of executions; return how many, and the id to go on after. A
    history has one row for each revision, so only executions with more than HISTORY_KEPT are looked at; attached,
    all are, because Harbor resets its revisions. What is deleted is noted in the same statement."""
    after, deleted = run(
        "shorten_history",
        after_id=after_id,
        page=HISTORY_PAGE,
        kept=HISTORY_KEPT,
        age=age,
        batch=BATCH,
        any_revision=is_attached(),
    )[0]
    return deleted, after


def forget_orphans(after_id: int) -> tuple[int, int | None]:
    """Delete our rows of executions that a running Harbor has deleted, which neither sees nor waits for them,
    among the next page of executions; return how many, and the id to go on after."""
    looked_at, last_id, deleted = run("forget_orphans", after_id=after_id, page=HISTORY_PAGE)[0]
    return deleted, last_id if looked_at == HISTORY_PAGE else None
