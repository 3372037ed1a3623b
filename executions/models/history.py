"""The history of an execution, what was cut off of it, and the counters for Prometheus."""

from django.db import models
from django.db.models import Q

from harbor_refresh.executions.models.execution import OF_EXECUTION, Execution, OwnRow
from harbor_refresh.executions.status import Status


class StatusChange(models.Model):
    """One revision of an execution, a row of its history. The rows that are not `told` are the outbox.

    There is exactly one row for each revision from 1 to `execution.revision`, and `from_status` of a row is
    `to_status` of the row before it. The sweep deletes the oldest rows of a long history (`ShortenedHistory`). If
    both statuses of a row are equal, the end time has changed: a task ran again between two refreshes.
    """

    id = models.BigAutoField(primary_key=True)
    # No constraint in the database: one statement writes this row and its execution, under the execution's lock,
    # and a constraint would check each row again (100,000 statements for 100,000 refreshes).
    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, related_name="history", db_index=False, db_constraint=False
    )
    revision = models.BigIntegerField()
    from_status = models.CharField("from", max_length=16, choices=Status)
    to_status = models.CharField("to", max_length=16, choices=Status)
    at = models.DateTimeField()
    #: False until its deliveries are written (deliveries/deliverer.py). The writers set it to True at once while
    #: there is no subscription. A writer that does not know the column leaves it False, which loses nothing.
    told = models.BooleanField(default=False, db_default=False, editable=False)

    class Meta:
        db_table = "execution_status_change"
        ordering = ("revision",)
        indexes = (
            # write_deliveries.sql: what is not told, in the order of the ids. Empty while nothing is subscribed.
            models.Index(fields=["id"], name="status_change_untold", condition=Q(told=False)),
        )
        constraints = (
            # its index also serves the history of one execution
            models.UniqueConstraint(fields=["execution", "revision"], name="status_change_once_a_revision"),
        )

    def __str__(self) -> str:
        return f"{self.from_status} → {self.to_status}"


class ShortenedHistory(OwnRow):
    """An execution whose oldest status changes were deleted: those up to the revision `through`. Every later
    revision has its row (executions/retention/housekeeping.py)."""

    execution = models.OneToOneField(Execution, primary_key=True, related_name="shortened_history", **OF_EXECUTION)
    through = models.BigIntegerField()

    class Meta:
        db_table = "execution_shortened_history"
        constraints = (models.CheckConstraint(name="shortened_history_begins", condition=Q(through__gte=1)),)


class Counter(OwnRow):
    """A part of a counter (executions/news/counters.py). The counter is the sum of its shards.

    `series` are its labels, as in `result=changed`. Of a histogram, `le=0.5` counts what was observed up to that
    bound and above the one before it, and `sum` is the total in microseconds.
    """

    pk = models.CompositePrimaryKey("metric", "series", "shard")
    metric = models.TextField()
    series = models.TextField()
    shard = models.IntegerField()
    amount = models.BigIntegerField()

    class Meta:
        db_table = "execution_counter"
        constraints = (models.CheckConstraint(name="counter_only_grows", condition=Q(amount__gte=1)),)
