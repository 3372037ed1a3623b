from django.db import models
from django.db.models import Q


class Watermark(models.Model):
    """One row: every task change committed before this moment has been found to agree with its execution."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    settled_before = models.DateTimeField()

    class Meta:
        db_table = "execution_watermark"
        constraints = (models.CheckConstraint(name="watermark_is_one_row", condition=Q(id=1)),)

    def __str__(self) -> str:
        return f"settled before {self.settled_before}"
