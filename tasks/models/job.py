from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.models import F, Q

from executions.models.task import Task

#: The index of waiting jobs has so many parts: a prime number, so that no regular pattern of keys fills only
#: one.
PARTS = 1009


class Job(models.Model):
    """The work of a worker for a task: all that is needed to publish its message, and to publish it again.

    It is written with its task, before any message. The task has its status. It may begin `max_attempts` times,
    and as often again after a retry by hand: `runs_before` counts the runs before that. A unique job keeps its
    key for ever, and holds it while no other job with that key may run.

    A job of a chain `follows` another job. The result of a successful run of that job is `handed_on` to it,
    with the revision of the run. A job that takes no result gets the revision alone.
    """

    # both constraints are in sql/jobs_go_with_their_tasks.sql: there they can say ON DELETE CASCADE
    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, related_name="job", db_constraint=False
    )
    name = models.CharField(max_length=255)
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    max_attempts = models.PositiveSmallIntegerField()
    runs_before = models.PositiveIntegerField(default=0)
    unique_key = models.CharField(max_length=64, null=True)  # noqa: DJ001  # NULL: it is not unique
    holds_key = models.BooleanField(default=False)
    follows = models.ForeignKey(
        "self", null=True, on_delete=models.RESTRICT, related_name="followers", db_index=False, db_constraint=False
    )
    takes_result = models.BooleanField(default=False)
    handed_on = models.JSONField(null=True)
    handed_on_revision = models.BigIntegerField(null=True)
    published_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_job"
        indexes = (
            # the publisher: jobs without a message that may begin
            models.Index(
                fields=["task"],
                name="job_unpublished",
                condition=Q(published_at__isnull=True)
                & (Q(follows__isnull=True) | Q(handed_on_revision__isnull=False)),
            ),
            # find_waiting_behind_ended.sql: jobs of chains without a message
            models.Index(
                F("task_id") % PARTS,
                "task_id",
                include=["follows"],
                name="job_waits",
                condition=Q(published_at__isnull=True, follows__isnull=False),
            ),
            # the end of a job: the jobs that follow it in its chain
            models.Index(fields=["follows"], name="job_follows", condition=Q(follows__isnull=False)),
        )
        constraints = (
            # a unique job holds its key until its task is final, see jobs/lifecycle/unique_keys.py
            models.UniqueConstraint(fields=["unique_key"], condition=Q(holds_key=True), name="job_unique"),
            models.CheckConstraint(name="job_may_run", condition=Q(max_attempts__gte=1)),
            models.CheckConstraint(
                name="job_handed_on_by_a_run",
                condition=Q(handed_on__isnull=True, handed_on_revision__isnull=True)
                | Q(handed_on_revision__isnull=False, handed_on_revision__gte=0, follows__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"job {self.name} of task {self.task_id}"

    @property
    def may_begin(self) -> int:
        """How often it may begin in all, counted like `run_count` of its task."""
        return self.runs_before + self.max_attempts

    @property
    def arguments(self) -> Sequence[Any]:
        """The arguments of its function. A result that was handed on comes first."""
        was_handed_on = self.takes_result and self.handed_on_revision is not None
        return [self.handed_on, *self.args] if was_handed_on else self.args
