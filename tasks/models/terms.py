from django.db import models
from django.db.models import Q

from harbor_refresh.executions.models.execution import Execution
from harbor_refresh.executions.status import MAX_VENDOR


class Terms(models.Model):
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
    first_failed_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    is_over = models.BooleanField(default=False)

    class Meta:
        db_table = "execution_terms"
        default_permissions = ()
        indexes = (
            # consequences.py: the deadlines that have passed
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

    def __str__(self) -> str:
        return f"terms of execution {self.execution_id}"


class Failure(models.Model):
    """A task of this execution has failed, and its terms are not carried out yet. A trigger writes the row
    (jobs/sql/schema/note_failures.sql), and tasks/jobs/consequences.py deletes it. A constraint would lock the
    execution, after its task."""

    id = models.BigAutoField(primary_key=True)
    execution_id = models.BigIntegerField("execution")

    class Meta:
        db_table = "execution_failure"
        default_permissions = ()

    def __str__(self) -> str:
        return f"a failure in execution {self.execution_id}"
