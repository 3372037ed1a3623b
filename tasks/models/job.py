from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.models import F, Q

from harbor_refresh.executions.models.execution import Task

#: The parts of the index of waiting jobs: a prime number, so that no regular pattern of keys fills only one part.
PARTS = 1009


class Job(models.Model):
    """The work of a task: all that its message needs, to publish it at any time.

    A job is written with its task, before any message. Its status is that of its task. It may begin `max_attempts`
    times, and as often again when it is tried again by hand; `runs_before` counts the runs before that. A unique
    job keeps its key, and holds it while no other job with that key may run.

    A job of a chain `follows` another job. The result of a successful run of that job is written to `handed_on`,
    with the revision of the run. A job that takes no result gets only the revision.

    `args` and `kwargs` have a revision, which is 0 until a run asks for others (records/arguments.py).
    """

    # both constraints are in sql/jobs_go_with_their_tasks.sql: there they can say ON DELETE CASCADE
    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, related_name="job", db_constraint=False
    )
    name = models.CharField(max_length=255)
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    arguments_revision = models.BigIntegerField(default=0, db_default=0)
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
            # publication: jobs that have no message and may have their turn
            models.Index(
                fields=["task"],
                name="job_unpublished",
                condition=Q(published_at__isnull=True)
                & (Q(follows__isnull=True) | Q(handed_on_revision__isnull=False)),
            ),
            # find_waiting_behind_ended.sql: jobs of chains that have no message
            models.Index(
                F("task_id") % PARTS,
                "task_id",
                include=["follows"],
                name="job_waits",
                condition=Q(published_at__isnull=True, follows__isnull=False),
            ),
            # the end of a job: the job after it in its chain
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
        """Return how often it may begin in all, in the count of its task's `run_count`."""
        return self.runs_before + self.max_attempts

    @property
    def arguments(self) -> Sequence[Any]:
        """Return the arguments of its function. The result of the job before it comes first."""
        has_result = self.takes_result and self.handed_on_revision is not None
        return [self.handed_on, *self.args] if has_result else self.args


class JobEnd(models.Model):
    """What is kept of the end of a run: the result, or why it was not kept, or the traceback of an error.

    A job has a row if its task asks for `keep_result`, or once it has failed. The row is of the run of `revision`,
    and counts while the task has that revision: an end that another run has followed is not shown any more.
    """

    # the constraint is in sql/jobs_go_with_their_tasks.sql: there it can say ON DELETE CASCADE
    job = models.OneToOneField(
        Job, on_delete=models.CASCADE, primary_key=True, related_name="kept_end", db_constraint=False
    )
    revision = models.BigIntegerField()
    result = models.JSONField(null=True)
    why_not = models.TextField(db_default="")
    traceback = models.TextField(db_default="")

    class Meta:
        db_table = "execution_job_end"
        default_permissions = ()
        constraints = (
            models.CheckConstraint(
                name="job_end_has_one_kind",
                condition=Q(why_not="", traceback="")
                | Q(result__isnull=True, traceback="")
                | Q(result__isnull=True, why_not=""),
            ),
        )

    def __str__(self) -> str:
        return f"the end of job {self.job_id} in revision {self.revision}"
