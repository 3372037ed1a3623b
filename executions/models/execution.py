"""Executions and tasks, the history of each status, and the counters for Prometheus."""

from collections.abc import Collection, Mapping
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.status import CODES, FINAL, FINAL_CODE, LAST_REVISION, MAX_VENDOR, Status


class OwnRow(models.Model):
    """A row whose text is its kind and its key."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"


class HarborsRow(models.Model):
    """A row that Harbor may have written. NULL in it reads as the zero of its type, as Harbor reads it.

    In our own tables these columns are never NULL. Values that are read without a row (`values_list`) stay NULL.
    """

    #: Columns that Harbor leaves NULL, with their types. Its moments stay None.
    nullable: ClassVar[Mapping[str, type]] = {
        **dict.fromkeys(("status", "status_message", "job_id"), str),
        **dict.fromkeys(("vendor_id", "revision", "status_revision", "run_count"), int),
        "extra_attrs": dict,
    }

    class Meta:
        abstract = True

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[Any], **newer: Any) -> Self:
        if is_attached():
            pairs = zip(field_names, values, strict=False)
            values = [
                cls.nullable[name]() if value is None and name in cls.nullable else value for name, value in pairs
            ]
        return super().from_db(db, field_names, values, **newer)


class Execution(HarborsRow):
    """One piece of work. Its status is rolled up from its tasks and is never edited by hand."""

    id = models.BigAutoField(primary_key=True)
    vendor_type = models.CharField("vendor", max_length=MAX_VENDOR)
    vendor_id = models.BigIntegerField(default=0)
    status = models.CharField(max_length=16, choices=Status, default=Status.RUNNING)
    status_message = models.TextField(blank=True, default="")
    trigger = models.CharField(max_length=16, default="MANUAL")
    extra_attrs = models.JSONField(default=dict, blank=True)
    start_time = models.DateTimeField(db_default=Now())
    update_time = models.DateTimeField(db_default=Now())
    end_time = models.DateTimeField(null=True, blank=True)
    revision = models.BigIntegerField(default=0)

    class Meta:
        db_table = "execution"
        indexes = (
            # the admin's list: newest first within a vendor. The columns that a refresh writes (status, end_time,
            # update_time) have no index, so the new row stays on its page and no index is written, which makes
            # the refresh a third faster.
            models.Index(fields=["vendor_type", "vendor_id", "-id"], name="execution_vendor"),
            # the admin's list between two dates, and in the order of the starts
            models.Index(fields=["start_time", "id"], name="execution_started"),
        )
        constraints = (
            models.CheckConstraint(name="execution_status_known", condition=Q(status__in=Status.values)),
            models.CheckConstraint(
                name="execution_ends_when_final",
                condition=Q(status__in=FINAL, end_time__isnull=False)
                | (~Q(status__in=FINAL) & Q(end_time__isnull=True)),
            ),
            # a colon in it would make the queue's member `ID:VENDOR` and its token unreadable
            models.CheckConstraint(
                name="execution_vendor_readable", condition=~Q(vendor_type="") & ~Q(vendor_type__contains=":")
            ),
            models.CheckConstraint(name="execution_revision_grows", condition=Q(revision__gte=0)),
        )

    def __str__(self) -> str:
        return f"execution {self.pk} ({self.vendor_type})"

    @property
    def vendor_key(self) -> str:
        """The object that it is for, as text: `vendor_id`, or the text that was given (vendor_keys.py)."""
        text = getattr(self, "text_key", None) if self.vendor_id < 0 else None
        return text.key if text else str(self.vendor_id)


#: What the references to an execution have in tables of our own.
OF_EXECUTION: dict[str, Any] = {"on_delete": models.CASCADE, "db_constraint": not is_attached()}


class Task(HarborsRow):
    """One part of an execution. Reports change it, guarded by revision and code; a stop changes it, too."""

    id = models.BigAutoField(primary_key=True)
    vendor_type = models.CharField("vendor", max_length=MAX_VENDOR)
    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    job_id = models.CharField(max_length=64, blank=True, default="")
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    status_code = models.SmallIntegerField(default=0)
    status_revision = models.BigIntegerField(default=0)
    status_message = models.TextField(blank=True, default="")
    run_count = models.IntegerField(default=0)
    extra_attrs = models.JSONField(default=dict, blank=True)
    creation_time = models.DateTimeField(db_default=Now())
    start_time = models.DateTimeField(null=True, blank=True)
    update_time = models.DateTimeField(db_default=Now())
    end_time = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "task"
        indexes = (
            # the rollup: the index alone answers it, 80,000 executions a second instead of 40,000
            models.Index(fields=["execution", "status_code"], include=["status", "end_time"], name="task_rollup"),
            # reconcile: the tasks that changed since the watermark, in pages
            models.Index(fields=["update_time", "id"], name="task_changed_lately"),
            # the status hook, which knows the job and not the task
            models.Index(fields=["job_id"], name="task_job", condition=~Q(job_id="")),
            # error_groups.py, and the admin's lists of tasks and of jobs by status. Most tasks end as Success,
            # and their rows have no entry.
            models.Index(
                fields=["status", "-execution", "-id"], name="task_by_status", condition=~Q(status=Status.SUCCESS)
            ),
        )
        constraints = (
            models.CheckConstraint(
                name="task_status_has_its_code",
                condition=reduce(or_, (Q(status=status, status_code=code) for status, code in CODES.items())),
            ),
            models.CheckConstraint(
                name="task_ends_when_final",
                condition=Q(status_code=FINAL_CODE, end_time__isnull=False)
                | (Q(status_code__lt=FINAL_CODE) & Q(end_time__isnull=True)),
            ),
            models.CheckConstraint(
                name="task_revision_in_range",
                condition=Q(status_revision__gte=0, status_revision__lte=LAST_REVISION),
            ),
        )

    def __str__(self) -> str:
        return f"task {self.pk} of execution {self.execution_id}"


class StatusChange(models.Model):
    """One revision of an execution, a row of its history. The rows that are not `told` are the outbox.

    There is exactly one row for each revision from 1 to `execution.revision`, and `from_status` of a row is
    `to_status` of the row before it. The sweep deletes the oldest rows of a long history
    (lifecycle/housekeeping.py). If both statuses of a row are equal, the end time has changed: a task ran again
    between two refreshes.
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
    #: False until its deliveries are written (news/deliveries/deliverer.py). The writers set it to True at once
    #: while there is no subscription. A writer that does not know the column leaves it False, which loses nothing.
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
