from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.attachment import is_attached
from harbor_refresh.executions.models.execution import Execution


class Added(models.TextChoices):
    TASKS = "tasks"
    CHILD = "child"


class Addition(models.Model):
    """Tasks, or a child, that were added to an execution under a key, so that the same addition is not made twice.
    Tasks and children have keys of their own."""

    id = models.BigAutoField(primary_key=True)
    execution = models.ForeignKey(
        Execution,
        on_delete=models.CASCADE,
        related_name="additions",
        db_index=False,
        db_constraint=not is_attached(),
    )
    kind = models.CharField(max_length=5, choices=Added)
    key = models.CharField(max_length=255)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_addition"
        default_permissions = ()
        constraints = (
            # its index also serves the deletion of the execution
            models.UniqueConstraint(fields=["execution", "kind", "key"], name="addition_once_a_key"),
            models.CheckConstraint(name="addition_is_of_a_kind", condition=Q(kind__in=Added.values)),
            models.CheckConstraint(name="addition_has_its_key", condition=~Q(key="")),
        )

    def __str__(self) -> str:
        return f"addition {self.key} to execution {self.execution_id}"
