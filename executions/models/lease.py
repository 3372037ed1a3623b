from django.db import models
from django.db.models import Q


class Lease(models.Model):
    """The right to do one kind of work, which one process has at a time: `holder`, until `held_until`
    (executions/lease.py)."""

    name = models.CharField(max_length=32, primary_key=True)
    holder = models.TextField(null=True)  # noqa: DJ001  # NULL and held_until NULL: the lease is free
    held_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_lease"
        constraints = (
            models.CheckConstraint(
                name="lease_is_whole",
                condition=Q(holder__isnull=True, held_until__isnull=True)
                | Q(holder__isnull=False, held_until__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"lease of {self.name}"
