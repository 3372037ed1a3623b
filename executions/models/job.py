from django.db import models
from django.db.models import Q

from executions.models.task import Task


class Job(models.Model):
    """What a worker has to do for a task: enough to publish its message, and to publish it again.

    Written with its task, before any message. Whether it runs, and how it ended, is in its task. It may begin
    `max_attempts` times, and as often again when it is tried again by hand: what it had begun until then is
    `runs_before`. A unique job keeps its key for ever, and holds it as long as no other of its like may run.
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, primary_key=True, related_name="job")
    name = models.CharField(max_length=255)
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    max_attempts = models.PositiveSmallIntegerField()
    runs_before = models.PositiveIntegerField(default=0)
    unique_key = models.CharField(max_length=64, null=True)  # noqa: DJ001  # NULL: it is not unique
    holds_key = models.BooleanField(default=False)
    follows = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="followers", db_index=False
    )
    takes_result = models.BooleanField(default=False)
    published_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_job"
        indexes = (
            # the publisher: what was recorded and has no message
            models.Index(fields=["task"], name="job_unpublished", condition=Q(published_at__isnull=True)),
            # the end of a job: who comes after it in its chain
            models.Index(fields=["follows"], name="job_follows", condition=Q(follows__isnull=False)),
        )
        constraints = (
            # a unique job holds its key until its task is final, see usecases/jobs/uniqueness.py
            models.UniqueConstraint(fields=["unique_key"], condition=Q(holds_key=True), name="job_unique"),
            models.CheckConstraint(name="job_may_run", condition=Q(max_attempts__gte=1)),
        )

    def __str__(self) -> str:
        return f"job {self.name} of task {self.task_id}"

    @property
    def may_begin(self) -> int:
        """How often in all, counted as `run_count` of its task is."""
        return self.runs_before + self.max_attempts
