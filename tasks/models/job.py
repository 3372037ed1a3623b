from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.models import F, Q

from executions.models.task import Task

#: The index of waiting jobs has so many parts: a prime number, so that no regular pattern of keys fills only one.
PARTS = 1009


class Job(models.Model):
    """What a worker has to do for a task: enough to publish its message, and to publish it again.

    Written with its task, before any message. Whether it runs, and how it ended, is in its task. It may begin
    `max_attempts` times, and as often again when it is tried again by hand: what it had begun until then is
    `runs_before`. A unique job keeps its key for ever, and holds it as long as no other of its like may run.

    A job of a chain `follows` another. What a successful run of that one returned is `handed_on` to it, with the
    revision of the run. A job that takes no result gets the revision alone.
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
            # the publisher: what has no message, and may have its turn
            models.Index(
                fields=["task"],
                name="job_unpublished",
                condition=Q(published_at__isnull=True)
                & (Q(follows__isnull=True) | Q(handed_on_revision__isnull=False)),
            ),
            # find_waiting_behind_ended.sql: of chains, what has no message
            models.Index(
                F("task_id") % PARTS,
                "task_id",
                include=["follows"],
                name="job_waits",
                condition=Q(published_at__isnull=True, follows__isnull=False),
            ),
            # the end of a job: who comes after it in its chain
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
        """How often in all, counted as `run_count` of its task is."""
        return self.runs_before + self.max_attempts

    @property
    def arguments(self) -> Sequence[Any]:
        """Those of its function. What was handed on comes first."""
        was_handed_on = self.takes_result and self.handed_on_revision is not None
        return [self.handed_on, *self.args] if was_handed_on else self.args
