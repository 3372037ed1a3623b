"""Compare one execution with its tasks, for a person who asks why its status is what it is. Changes nothing."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution


@dataclass(frozen=True)
class Comparison:
    """`true_status` is None if it has no tasks. `is_locked`: another transaction has locked its row."""

    execution_id: int
    vendor_type: str
    status: str
    end_time: datetime | None
    true_status: str | None
    true_end_time: datetime | None
    attempts: int | None
    quarantined_at: datetime | None
    reason: str | None
    is_locked: bool = False

    @property
    def is_right(self) -> bool:
        true = (self.true_status, self.true_end_time)
        return self.true_status is None or (self.status, self.end_time) == true


def compare(execution_id: int) -> Comparison:
    """Raises NoSuchExecution."""
    with transaction.atomic():
        rows = run("compare_with_tasks", id=execution_id)
        if not rows:
            raise NoSuchExecution(execution_id)
        found = Comparison(execution_id, *rows[0])
        free = Execution.objects.filter(pk=execution_id).select_for_update(no_key=True, skip_locked=True).first()
    return replace(found, is_locked=free is None and found.reason is None)
