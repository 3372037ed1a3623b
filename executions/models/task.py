from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.execution import Execution
from harbor_refresh.executions.models.harbors_row import HarborsRow, zeros
from harbor_refresh.executions.status import CODES, FINAL_CODE, MAX_REVISION, MAX_VENDOR, Status


def _status_has_its_code() -> Q:
    condition = Q()
    for status, code in CODES.items():
        condition |= Q(status=status, status_code=code)
    return condition


class Task(HarborsRow):
    """One part of an execution. Reports change it, guarded by revision and code; a stop changes it, too."""

    nullable = zeros(job_id=str, status_revision=int, status_message=str, run_count=int, extra_attrs=dict)

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
            models.Index(
                fields=["execution", "status_code"],
                include=["status", "end_time"],
                name="task_rollup",
            ),
            # reconcile: the tasks that changed since the watermark, in pages
            models.Index(fields=["update_time", "id"], name="task_changed_lately"),
            # the status hook, which knows the job and not the task
            models.Index(fields=["job_id"], name="task_job", condition=~Q(job_id="")),
            # find_by_status.sql, group_errors.sql, find_jobs_by_status.sql, and the admin's list of tasks by
            # status. Most tasks end as Success, and their rows have no entry.
            models.Index(
                fields=["status", "-execution", "-id"], name="task_by_status", condition=~Q(status=Status.SUCCESS)
            ),
        )
        constraints = (
            models.CheckConstraint(name="task_status_has_its_code", condition=_status_has_its_code()),
            models.CheckConstraint(
                name="task_ends_when_final",
                condition=Q(status_code=FINAL_CODE, end_time__isnull=False)
                | (Q(status_code__lt=FINAL_CODE) & Q(end_time__isnull=True)),
            ),
            models.CheckConstraint(
                name="task_revision_in_range",
                condition=Q(status_revision__gte=0, status_revision__lte=MAX_REVISION),
            ),
        )

    def __str__(self) -> str:
        return f"task {self.pk} of execution {self.execution_id}"
