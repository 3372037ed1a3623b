from django.db import models
from django.db.models.functions import Now

from harbor_refresh.executions.attachment import is_attached
from harbor_refresh.executions.models.execution import Execution


class Quarantine(models.Model):
    """An execution that failed too often. It is not refreshed until it is released or its time is up."""

    execution = models.OneToOneField(
        Execution,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="quarantine",
        db_constraint=not is_attached(),
    )
    reason = models.TextField()
    attempts = models.IntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_quarantine"
        verbose_name_plural = "quarantine"

    def __str__(self) -> str:
        return f"quarantine of execution {self.execution_id}"


class Release(models.Model):
    """A release from quarantine that reconcile has not seen yet. Reconcile must look at changes from `changed_at`
    on."""

    changed_at = models.DateTimeField()

    class Meta:
        db_table = "execution_release"

    def __str__(self) -> str:
        return f"release of changes from {self.changed_at}"
