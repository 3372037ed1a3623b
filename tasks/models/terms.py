from django.db import models
from django.db.models import Q

from harbor_refresh.executions.models.execution import Execution
from harbor_refresh.executions.status import MAX_VENDOR


class Terms(models.Model):
    """What `start` was told about an execution as a whole (tasks/jobs/terms.py). Most executions have no row.

    `once` is the key under which it was started: of one vendor type a single execution has it, as long as that
    exists.
    """

    # the constraint is in jobs/sql/terms_go_with_their_executions.sql: there it can say ON DELETE CASCADE
    execution = models.OneToOneField(
        Execution, on_delete=models.CASCADE, primary_key=True, related_name="terms", db_constraint=False
    )
    vendor_type = models.CharField(max_length=MAX_VENDOR)
    once = models.CharField(max_length=255, null=True)  # noqa: DJ001  # NULL: it has no key

    class Meta:
        db_table = "execution_terms"
        # no screen shows these rows by themselves, so there is nothing to permit
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=["vendor_type", "once"], name="terms_once", condition=Q(once__isnull=False)
            ),
            models.CheckConstraint(name="terms_once_is_text", condition=~Q(once="")),
        )

    def __str__(self) -> str:
        return f"terms of execution {self.execution_id}"
