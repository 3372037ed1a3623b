from django.db import models
from django.db.models import Q

from harbor_refresh.executions.models.without_an_app import TextList
from harbor_refresh.executions.status import FINAL, Status


class Callback(models.Model):
    """What is called when one execution ends with one of these statuses: a function, by its name, and its
    arguments (executions/callbacks.py).

    It may outlive its execution: a delivery that is not made when the execution is deleted still finds it.
    """

    id = models.BigAutoField(primary_key=True)
    execution_id = models.BigIntegerField("execution")
    handler = models.CharField(max_length=400)
    statuses = TextList(models.CharField(max_length=16, choices=Status))
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    #: Whether it gets what has ended before its own arguments.
    takes_change = models.BooleanField(default=True)
    #: When its execution was deleted, if a delivery waited then.
    orphaned_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_callback"
        # no screen shows these rows, so there is nothing to permit
        default_permissions = ()
        indexes = (
            # write_deliveries.sql, and a call
            models.Index(fields=["execution_id", "handler"], name="callback_of_execution"),
            # housekeeping: the oldest first
            models.Index(fields=["orphaned_at"], name="callback_orphaned", condition=Q(orphaned_at__isnull=False)),
        )
        constraints = (
            models.CheckConstraint(
                name="callback_is_of_an_end",
                condition=Q(statuses__contained_by=[str(status) for status in FINAL], statuses__len__gte=1),
            ),
        )

    def __str__(self) -> str:
        return f"callback {self.handler} of execution {self.execution_id}"
