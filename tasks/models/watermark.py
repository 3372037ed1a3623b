from django.db import models
from django.db.models import Q


class Watermark(models.Model):
    """One row: every task change committed before this moment has been found to agree with its execution.

    `last_pass_at` and `timeline` are the database's time and WAL timeline when the last pass began: they name
    the clock and the server of this moment. `last_drifted`
    executions of that pass had lost their mark. `holder` may reconcile until `held_until`
    (tasks/pipeline/lease.py).
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    settled_before = models.DateTimeField()
    last_pass_at = models.DateTimeField(null=True)
    timeline = models.CharField(max_length=8, db_default="")
    last_drifted = models.BigIntegerField(null=True)
    holder = models.TextField(null=True)  # noqa: DJ001  # NULL and held_until NULL: the lease is free
    held_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_watermark"
        constraints = (
            models.CheckConstraint(name="watermark_is_one_row", condition=Q(id=1)),
            models.CheckConstraint(
                name="watermark_lease_is_whole",
                condition=Q(holder__isnull=True, held_until__isnull=True)
                | Q(holder__isnull=False, held_until__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"settled before {self.settled_before}"
