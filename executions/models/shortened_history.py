from django.db import models
from django.db.models import Q

from harbor_refresh.executions.attachment import is_attached
from harbor_refresh.executions.models.execution import Execution


class ShortenedHistory(models.Model):
    """An execution whose oldest status changes were deleted: those up to the revision `through`. Every later
    revision has its row (executions/history.py)."""

    execution = models.OneToOneField(
        Execution,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="shortened_history",
        db_constraint=not is_attached(),
    )
    through = models.BigIntegerField()

    class Meta:
        db_table = "execution_shortened_history"
        constraints = (models.CheckConstraint(name="shortened_history_begins", condition=Q(through__gte=1)),)

    def __str__(self) -> str:
        return f"history of execution {self.execution_id} after revision {self.through}"
