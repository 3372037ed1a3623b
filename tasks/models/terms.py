"""What a project says of tasks and executions: limits (tasks/jobs/limits.py) and terms (tasks/jobs/terms.py)."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.execution import Execution, OwnRow
from harbor_refresh.executions.models.operations import MAX_NAME
from harbor_refresh.executions.status import MAX_VENDOR

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
                condition=Q(rate=None) | Q(rate__gte=1, rate__isnull=False),
            ),
            models.CheckConstraint(name="limit_per_a_time", condition=Q(per__gte=1)),
        )

    def __str__(self) -> str:
        return f"the limit of {self.name}"


class LimitPace(OwnRow):
    """The pace of a key that has a rate: its next job may begin at `next_at`. A row of the past says nothing."""

    pk = models.CompositePrimaryKey("name", "key")
    name = models.CharField(max_length=255)
    key = models.CharField(max_length=MAX_KEY)
    next_at = models.DateTimeField()

    class Meta:
        db_table = "execution_limit_pace"
        default_permissions = ()


class Terms(OwnRow):
    """What `start` was told about an execution as a whole (tasks/jobs/terms.py). Most executions have no row. Of
    one vendor type a single execution has the key `once`. `first_failed_at` is when callbacks were told of its
    first failed task. At its `deadline` the rest is stopped, once: after that it `is_over`."""

    # the constraint is in jobs/sql/schema/terms_go_with_their_executions.sql: there it can say ON DELETE CASCADE
    execution = models.OneToOneField(
        Execution, on_delete=models.CASCADE, primary_key=True, related_name="terms", db_constraint=False
    )
    vendor_type = models.CharField(max_length=MAX_VENDOR)
    once = models.CharField(max_length=255, null=True)  # noqa: DJ001  # NULL: it has no key
    stops_on_failure = models.BooleanField(default=False)
    tells_first_failure = models.BooleanField(default=False)
    #: Whose turns its jobs share (jobs/starting/fairness.py).
    tenant = models.CharField(max_length=MAX_KEY, default="", db_default="")
    first_failed_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    is_over = models.BooleanField(default=False)

    class Meta:
        db_table = "execution_terms"
        default_permissions = ()
        indexes = (
            # jobs/terms.py: the deadlines that have passed
            models.Index(
                fields=["deadline"], name="terms_deadline", condition=Q(deadline__isnull=False, is_over=False)
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=["vendor_type", "once"], name="terms_once", condition=Q(once__isnull=False)
            ),
            models.CheckConstraint(name="terms_once_is_text", condition=~Q(once="")),
        )


class Failure(OwnRow):
    """A task of this execution has failed, and its terms are not carried out yet. A trigger writes the row
    (jobs/sql/schema/note_failures.sql), and tasks/jobs/terms.py deletes it. A constraint would lock the
    execution, after its task."""

    id = models.BigAutoField(primary_key=True)
    execution_id = models.BigIntegerField("execution")

    class Meta:
        db_table = "execution_failure"
        default_permissions = ()
