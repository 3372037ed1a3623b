from django.db import models
from django.db.models import Q

from harbor_refresh.executions.attachment import is_attached
from harbor_refresh.executions.models.execution import Execution


class Gate(models.Model):
    """What keeps an open execution from ending: one more of its tasks, Running until the execution is closed
    (executions/gates.py)."""

    execution = models.OneToOneField(
        Execution,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="gate",
        db_constraint=not is_attached(),
    )
    #: Its task. No constraint: if that task is deleted alone, nothing keeps the execution open.
    task_id = models.BigIntegerField("task", unique=True)
    #: When its time limit ends it. NULL: it has ended.
    closes_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_gate"
        # no screen shows these rows, so there is nothing to permit
        default_permissions = ()
        indexes = (
            # lock_overdue_gates.sql
            models.Index(fields=["closes_at"], name="gate_open", condition=Q(closes_at__isnull=False)),
        )

    def __str__(self) -> str:
        return f"gate of execution {self.execution_id}"
