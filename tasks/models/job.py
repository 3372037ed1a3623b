from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.execution import OwnRow, Task
from harbor_refresh.tasks.models.state import MAX_QUEUE
from harbor_refresh.tasks.models.terms import MAX_KEY


class JobState(models.TextChoices):
    """Where a job is (docs/explanation/architecture.md has the picture)."""

    WAITING = "waiting"
    SENT = "sent"
    RUNNING = "running"
    ENDED = "ended"


class JobInput(models.TextChoices):
    """What a job gets before its own arguments, of the jobs that it needs."""

    NOTHING = "nothing"
    RESULT = "result"
    LIST = "list"


class Node(models.Model):
    """A worker: its main process beats for the processes below it (tasks/jobs/live_workers.py). This table and its
    references alone call it a node: everywhere else a node is one process (tasks/queue/node.py).

    It runs `slots` tasks at a time, and so many are `busy`, with jobs or with plain tasks. `rate` of them end in a
    second; NULL: that is not known yet. At `started_at` it last connected to the broker. `began` has the unix
    seconds at which a run of each of its queues has last begun, and under "", which is no queue, the tasks of
    these runs (jobs/sql/look_at_runs.sql). One that was not heard for the ttl is suspected, and dead after another
    ttl of silence: its row is deleted, its jobs released.
    """

    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=255)
    slots = models.PositiveIntegerField()
    busy = models.PositiveIntegerField(db_default=0)
    rate = models.FloatField(null=True)
    queues = models.JSONField()
    started_at = models.DateTimeField(db_default=Now())
    heard_at = models.DateTimeField(db_default=Now())
    suspected_at = models.DateTimeField(null=True)
    began = models.JSONField(db_default={})

    class Meta:
        db_table = "execution_node"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name


class Job(models.Model):
    """The work of a task, and the one owner of where it is: `state`, and `run`, the number of runs that have
    begun.

    A job is written with its task, before any message. A message carries the task and `run`, and nothing that the
    row knows. A job may begin `max_attempts` times, and as often again when it is tried again by hand;
    `runs_before` counts the runs before that. A unique job keeps its key, and holds it while no other job with
    that key may run.

    A job may need others (`Need`): its turn has not come while it `waits_for` some of them. What it `takes` of
    them comes before its own arguments. If it is needed itself, `result` is what its successful run has left, with
    the revision of the run. `revision` is that of the run that waits or runs, as reports have it. `report` is the
    report that the report target has not taken yet.

    A job with a `limit_key` waits until it is `admitted` (jobs/sql/schema/admit_function.sql). It has a place in
    the limit until it has ended, or waits for another run. `turn` is its place among the jobs of its queue with
    the same priority, or, until it is admitted, of its limit (jobs/sql/schema/turn_functions.sql). Executions of
    one `tenant` share their turns.

    At `kill_at`, the process of a run that was stopped is killed (live_workers.py), unless the job runs again.
    """

    # the constraint is in migrations/sql/jobs_go_with_their_tasks.sql: there it can say ON DELETE CASCADE
    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, related_name="job", db_constraint=False
    )
    name = models.CharField(max_length=255)
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    queue = models.CharField(max_length=MAX_QUEUE)
    priority = models.SmallIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField()
    runs_before = models.PositiveIntegerField(default=0)
    unique_key = models.CharField(max_length=64, null=True)  # noqa: DJ001  # NULL: it is not unique
    holds_key = models.BooleanField(default=False)
    takes = models.CharField(max_length=7, choices=JobInput, default=JobInput.NOTHING, db_default=JobInput.NOTHING)
    result = models.JSONField(null=True)
    result_revision = models.BigIntegerField(null=True)

    state = models.CharField(max_length=8, choices=JobState, default=JobState.WAITING)
    run = models.IntegerField(default=0)
    revision = models.BigIntegerField(default=0)
    waits_for = models.PositiveIntegerField(default=0, db_default=0)
    not_before = models.DateTimeField(null=True)
    retries = models.IntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    resent = models.SmallIntegerField(default=0)
    node = models.BigIntegerField(null=True)
    process = models.IntegerField(null=True)
    begun_at = models.DateTimeField(null=True)
    heard_at = models.DateTimeField(null=True)
    check_in = models.JSONField(null=True)
    report = models.JSONField(null=True)
    limit_key = models.CharField(max_length=MAX_KEY, null=True)  # noqa: DJ001  # NULL: it has no limit
    admitted = models.BooleanField(default=True, db_default=True)
    turn = models.BigIntegerField(default=0, db_default=0)
    tenant = models.CharField(max_length=MAX_KEY, null=True)  # noqa: DJ001  # NULL: it shares its turns with none
    kill_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_job"
        indexes = (
            # pick.sql: the next jobs of a queue
            models.Index(
                fields=["queue", "priority", "turn", "task"],
                name="job_next",
                condition=Q(state="waiting", waits_for=0, not_before=None, admitted=True),
            ),
            # admit_function.sql: the next jobs of a key, and the keys that have any
            models.Index(
                fields=["name", "limit_key", "priority", "turn", "task"],
                name="job_limited",
                condition=Q(state="waiting", waits_for=0, not_before=None, admitted=False),
            ),
            # admit_function.sql counts them
            models.Index(
                fields=["name", "limit_key", "state"],
                name="job_admitted",
                condition=Q(limit_key__isnull=False, admitted=True) & ~Q(state="ended"),
            ),
            # turn_functions.sql: the last turn of a tenant
            models.Index(
                fields=["tenant", "queue", "priority", "limit_key", "turn"],
                name="job_of_tenant",
                condition=Q(tenant__isnull=False, state="waiting"),
            ),
            # due.sql: jobs whose time has come
            models.Index(
                fields=["queue", "not_before"],
                name="job_due",
                condition=Q(state="waiting", waits_for=0, not_before__isnull=False),
            ),
            # pick.sql counts them, resend.sql finds the oldest
            models.Index(fields=["queue", "sent_at"], name="job_sent", condition=Q(state="sent")),
            # live_workers.py: what a worker or a process runs
            models.Index(fields=["node", "process"], name="job_running", condition=Q(state="running")),
            # jobs that wait for others, for their count
            models.Index(fields=["task"], name="job_unmet", condition=Q(state="waiting", waits_for__gt=0)),
            # report_target.py: reports that the target has not taken
            models.Index(fields=["task"], name="job_unreported", condition=Q(report__isnull=False)),
        )
        constraints = (
            # a unique job holds its key until its task is final, see jobs/starting/unique_keys.py
            models.UniqueConstraint(fields=["unique_key"], condition=Q(holds_key=True), name="job_unique"),
            models.CheckConstraint(
                name="job_begins_as_often_as_it_may",
                condition=Q(max_attempts__gte=1, run__lte=F("runs_before") + F("max_attempts")),
            ),
            models.CheckConstraint(name="job_state_known", condition=Q(state__in=JobState.values)),
            models.CheckConstraint(
                name="job_waits_for_a_limit", condition=Q(admitted=True) | Q(limit_key__isnull=False)
            ),
            models.CheckConstraint(
                name="job_runs_in_a_process",
                condition=Q(state="running", node__isnull=False, process__isnull=False, run__gte=1)
                | (~Q(state="running") & Q(node=None, process=None)),
            ),
            models.CheckConstraint(name="job_sent_at", condition=~Q(state="sent") | Q(sent_at__isnull=False)),
            models.CheckConstraint(
                name="job_result_of_a_run", condition=Q(result=None) | Q(result_revision__isnull=False)
            ),
        )

    def __str__(self) -> str:
        return f"job {self.name} of task {self.task_id}"

    @classmethod
    def in_line(cls, **of: Any) -> models.QuerySet["Job"]:
        """Return the jobs whose turn and time have come, as the indexes job_next and job_limited have them."""
        return cls.objects.filter(state=JobState.WAITING, waits_for=0, not_before=None, **of)

    @property
    def may_begin(self) -> int:
        """Return how often it may begin in all."""
        return self.runs_before + self.max_attempts


class Need(OwnRow):
    """A job needs another one: its turn has not come before that has succeeded; or has ended, if it is to run
    `even_if_failed`. Then the need `is_met`, and stays so once the turn of the job has come. The needed job has
    the lower id, as tasks are locked in that order. `place` is that of its result in a list."""

    # the constraints are in jobs/sql/schema/needs_go_with_their_jobs.sql: there they can say ON DELETE CASCADE
    pk = models.CompositePrimaryKey("job_id", "needed_id")
    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, related_name="needs", db_index=False, db_constraint=False
    )
    needed = models.ForeignKey(Job, on_delete=models.RESTRICT, related_name="needed_by", db_constraint=False)
    place = models.PositiveIntegerField()
    even_if_failed = models.BooleanField(default=False)
    is_met = models.BooleanField(default=False)

    class Meta:
        db_table = "execution_need"
        default_permissions = ()
        constraints = (models.CheckConstraint(name="need_of_an_earlier_job", condition=Q(needed__lt=F("job"))),)


class JobEnd(OwnRow):
    """What is kept of the end of a run: the result, or why it was not kept, or the traceback of an error. A job
    has a row if its task asks for `keep_result`, or once it has failed. The row counts while the task has its
    `revision`: an end that another run has followed is not shown any more."""

    # the constraint is in migrations/sql/jobs_go_with_their_tasks.sql: there it can say ON DELETE CASCADE
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
