"""Housekeeping: the tables whose old rows the sweep deletes.

A table is a line of HOUSEKEEPING: a name, a function and an age. The function deletes one bounded batch of the
rows that are older than the moment it is given, in the transaction of its caller, and returns how many; the
sweep calls it until it returns 0. It must not delete a row that is still needed, whatever its age. Tasks, jobs
and status changes go with their executions (deletion.py), and the oldest changes of long histories by
history.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Model

from harbor_refresh.executions.access import audit, received_messages
from harbor_refresh.executions.database import run
from harbor_refresh.executions.deliveries import dead_letters
from harbor_refresh.executions.lifecycle import tombstones
from harbor_refresh.executions.models import Action, Callback, IdempotencyKey, OldSecret

#: Rows that one transaction deletes.
BATCH = 1_000

#: How long the log of actions, and the actions that it leads to, are kept.
KEPT = timedelta(days=180)

Forget = Callable[[datetime], int]


@dataclass(frozen=True)
class Chore:
    name: str
    forget: Forget
    age: timedelta

    def do(self) -> int:
        """Delete one batch; return how many rows it deleted. The moment is one of the database's clock."""
        return self.forget(run("moment_before", age=self.age)[0][0])


def older(model: type[Model], column: str, **only: str) -> Forget:
    """Return a function that deletes a batch of the oldest rows by that column, which needs an index. Rows that
    another transaction has locked are in use, so they stay."""

    def forget(before: datetime) -> int:
        rows = model._default_manager.filter(**{f"{column}__lt": before}, **only).order_by(column)
        ids = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True)[:BATCH])
        return model._default_manager.filter(pk__in=ids)._raw_delete(using="default") if ids else 0

    return forget


HOUSEKEEPING: tuple[Chore, ...] = (
    # a sender tries again for minutes, and a key that is older is not worth its row
    Chore("idempotency keys", older(IdempotencyKey, "at"), timedelta(hours=24)),
    Chore("tombstones of tasks", tombstones.forget_deleted, tombstones.KEPT),
    Chore("ids of signed messages", received_messages.forget_received, received_messages.KEPT),
    Chore("old secrets of webhooks", older(OldSecret, "signs_until"), timedelta(0)),
    # an entry is older than the end of its action, so it goes first, and no entry loses its outcome
    Chore("log of actions", audit.forget, KEPT),
    Chore("ended actions", older(Action, "ended_at"), KEPT),
    # a dead letter can be sent again until then
    Chore("ended deliveries", dead_letters.forget, timedelta(days=30)),
    Chore("callbacks of deleted executions", older(Callback, "orphaned_at"), timedelta(days=60)),
)
