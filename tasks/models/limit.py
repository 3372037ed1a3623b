"""Limits: how many jobs of a task run at once, and how many begin in a while (tasks/jobs/limits.py)."""

from django.db import models
from django.db.models.functions import Now

from harbor_refresh.executions.models.operations import MAX_NAME

MAX_KEY = 200
#: The units of a rate, and their seconds.
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Limit(models.Model):
    """The limit of a task, for all workers together. NULL: it has none of this kind. `declared` is what the code
    says; the columns count. They are the same until an administrator changes the columns: `changed_by` is then a
    name, and what the code says does not count until the limit is reset."""

    name = models.CharField(max_length=255, primary_key=True)
    concurrency = models.PositiveIntegerField(null=True, blank=True)
    rate = models.PositiveIntegerField(null=True, blank=True)
    per = models.PositiveIntegerField(
        choices=[(1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day")], db_default=60, default=60
    )
    declared = models.JSONField(db_default={}, default=dict)
    changed_by = models.CharField(max_length=MAX_NAME, db_default="", default="")
    swept_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_limit"
        default_permissions = ("view", "change")
        constraints = (
            models.CheckConstraint(
                name="limit_rate_of_one_or_more",
                condition=models.Q(rate=None) | models.Q(rate__gte=1, rate__isnull=False),
            ),
            models.CheckConstraint(name="limit_per_a_time", condition=models.Q(per__gte=1)),
        )

    def __str__(self) -> str:
        return f"the limit of {self.name}"


class LimitPace(models.Model):
    """The pace of a key that has a rate: its next job may begin at `next_at`. A row of the past says nothing."""

    pk = models.CompositePrimaryKey("name", "key")
    name = models.CharField(max_length=255)
    key = models.CharField(max_length=MAX_KEY)
    next_at = models.DateTimeField()

    class Meta:
        db_table = "execution_limit_pace"
        default_permissions = ()

    def __str__(self) -> str:
        return f"the pace of {self.name} {self.key}"
