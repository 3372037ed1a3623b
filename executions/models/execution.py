from typing import Self, TypeVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.harbors_row import HarborsRow, zeros
from harbor_refresh.executions.models.without_an_app import JSONIndex
from harbor_refresh.executions.status import FINAL, MAX_VENDOR, Status

#: Execution, or a proxy of it.
Row = TypeVar("Row", bound="Execution")


class ExecutionQuerySet(models.QuerySet[Row]):
    def unfinished(self) -> Self:
        return self.filter(end_time__isnull=True)


class Execution(HarborsRow):
    """One piece of work. Its status is rolled up from its tasks and is never edited by hand."""

    nullable = zeros(vendor_id=int, status=str, status_message=str, extra_attrs=dict, revision=int)

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

    objects = ExecutionQuerySet.as_manager()

    class Meta:
        db_table = "execution"
        indexes = (
            # the admin's list: newest first within a vendor. The columns that a refresh writes (status, end_time,
            # update_time) have no index, so the new row stays on its page and no index is written, which makes
            # the refresh a third faster.
            models.Index(fields=["vendor_type", "vendor_id", "-id"], name="execution_vendor"),
            # the admin's list between two dates, and in the order of the starts
            models.Index(fields=["start_time", "id"], name="execution_started"),
            # find_by_attribute.sql: a value at a path in the attributes
            JSONIndex(fields=["extra_attrs"], opclasses=["jsonb_path_ops"], name="execution_attributes"),
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
                name="execution_vendor_readable",
                condition=~Q(vendor_type="") & ~Q(vendor_type__contains=":"),
            ),
            models.CheckConstraint(name="execution_revision_grows", condition=Q(revision__gte=0)),
        )

    @property
    def vendor_key(self) -> str:
        """The object that it is for, as text: `vendor_id`, or the text that was given (vendor_keys.py)."""
        text = getattr(self, "text_key", None) if self.vendor_id < 0 else None
        return text.key if text else str(self.vendor_id)

    def __str__(self) -> str:
        return f"execution {self.pk} ({self.vendor_type})"
