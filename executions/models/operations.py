"""What people do: actions on many executions, the audit log, the quarantine; and leases."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.models.execution import Execution

MAX_NAME = 150
MAX_ERROR = 1_000


class Verb(models.TextChoices):
    STOP = "stop"
    RETRY = "retry"
    RESUME = "resume"
    REFRESH = "refresh"
    DELETE = "delete"


class State(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class Origin(models.TextChoices):
    """Where it was asked for. An action of the terminal runs there, and in no worker."""

    API = "api"
    ADMIN = "admin"
    TERMINAL = "terminal"


OPEN = (State.QUEUED, State.RUNNING)
ENDED = (State.DONE, State.STOPPED, State.FAILED)


class Action(models.Model):
    """A verb for all executions that a filter chooses, done in pages, in the order of their ids.

    `highest` is the highest id when it was asked for, so later executions are not touched. `cursor` is the last id
    that has been looked at. `total` is how many the filter chose when the first run began; NULL if that was not
    counted, or if the count took too long.

    `done` is the sum of `changed`, `failed` (the database refused) and `skipped` (there was nothing to do, or the
    execution does not allow it). `attempts` counts the runs since the last progress. `holder` works on it until
    `held_until` (executions/actions/bulk.py).
    """

    id = models.BigAutoField(primary_key=True)
    verb = models.CharField(max_length=8, choices=Verb)
    filter = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=State, db_default=State.QUEUED)
    highest = models.BigIntegerField()
    cursor = models.BigIntegerField(db_default=0)
    total = models.BigIntegerField(null=True)
    done = models.BigIntegerField(db_default=0)
    changed = models.BigIntegerField(db_default=0)
    failed = models.BigIntegerField(db_default=0)
    skipped = models.BigIntegerField(db_default=0)
    requested_by = models.CharField(max_length=MAX_NAME, db_default="")
    requested_from = models.CharField(max_length=8, choices=Origin)
    stop_asked = models.BooleanField(db_default=False)
    # the first reason of a failed execution, or why the action itself has failed
    error = models.TextField(db_default="")
    attempts = models.SmallIntegerField(db_default=0)
    holder = models.TextField(null=True)  # noqa: DJ001  # NULL and held_until NULL: the lease is free
    held_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    begun_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_action"
        indexes = (
            # take_action.sql: the open action that was worked on the longest ago
            models.Index(fields=["updated_at", "id"], name="action_open", condition=Q(state__in=OPEN)),
            # the list by state, newest first
            models.Index(fields=["state", "-id"], name="action_state"),
            # housekeeping.py: the oldest of those that have ended
            models.Index(fields=["ended_at"], name="action_ended", condition=Q(ended_at__isnull=False)),
        )
        constraints = (
            models.CheckConstraint(name="action_verb_known", condition=Q(verb__in=Verb.values)),
            models.CheckConstraint(name="action_origin_known", condition=Q(requested_from__in=Origin.values)),
            models.CheckConstraint(
                name="action_ends_when_final",
                condition=Q(state__in=ENDED, ended_at__isnull=False) | Q(state__in=OPEN, ended_at__isnull=True),
            ),
            models.CheckConstraint(
                name="action_held_while_it_runs",
                condition=Q(holder__isnull=True, held_until__isnull=True)
                | Q(holder__isnull=False, held_until__isnull=False, state=State.RUNNING),
            ),
            # an action that was stopped before its first run has not begun
            models.CheckConstraint(
                name="action_begins_before_it_runs",
                condition=Q(state__in=(State.QUEUED, State.STOPPED)) | Q(begun_at__isnull=False),
            ),
            models.CheckConstraint(
                name="action_counts_add_up",
                condition=Q(
                    done=F("changed") + F("failed") + F("skipped"), changed__gte=0, failed__gte=0, skipped__gte=0
                ),
            ),
            models.CheckConstraint(
                name="action_cursor_in_range",
                condition=Q(cursor__gte=0, cursor__lte=F("highest"), attempts__gte=0),
            ),
        )

    def __str__(self) -> str:
        return f"action {self.pk}: {self.verb}"

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def progress(self) -> float | None:
        """The share that is done, 0 to 1; None if it is not known."""
        if self.state == State.DONE:
            return 1.0
        if self.total is None:
            return None
        return min(1.0, self.done / self.total) if self.total else 0.0


MAX_WORD = 32
MAX_TARGET = 200
MAX_DETAIL = 1_000


class Outcome(models.TextChoices):
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"


class AuditEntry(models.Model):
    """What a person, or a program with a token, did: by whom, from where, what, to what, and how it ended.

    An entry commits in the transaction of what it tells, so neither is without the other. `verb` and `kind` are
    words of executions/access/audit.py; they have no constraint here, because other apps add words of their own.

    `count`: how many rows were affected; NULL if that is not a number of rows. `action`: the entry asked for this
    action on many, whose state and counts are the outcome; housekeeping deletes actions after their entries.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=MAX_NAME, db_default="")
    origin = models.CharField(max_length=8, choices=Origin)
    # the address of the client as the web server sees it; of a terminal the name of its machine
    address = models.CharField(max_length=MAX_NAME, db_default="")
    verb = models.CharField(max_length=MAX_WORD)
    kind = models.CharField(max_length=MAX_WORD)
    target = models.CharField(max_length=MAX_TARGET, db_default="")
    count = models.BigIntegerField(null=True)
    outcome = models.CharField(max_length=16, choices=Outcome, db_default=Outcome.DONE)
    detail = models.TextField(db_default="")
    action = models.ForeignKey(
        Action, null=True, on_delete=models.SET_NULL, related_name="entries", db_index=False
    )

    class Meta:
        db_table = "execution_audit"
        verbose_name = "entry of the log of actions"
        verbose_name_plural = "log of actions"
        default_permissions = ("view",)
        indexes = (
            # the log of one execution, and the filter by kind; newest first
            models.Index(fields=["kind", "target", "-id"], name="audit_target"),
            # the filters by name, by verb and by origin; newest first
            models.Index(fields=["by", "-id"], name="audit_by"),
            models.Index(fields=["verb", "-id"], name="audit_verb"),
            models.Index(fields=["origin", "-id"], name="audit_origin"),
            # the filter by date, and housekeeping.py
            models.Index(fields=["at"], name="audit_at"),
            # the entry of an action, and the deletion of an action
            models.Index(fields=["action"], name="audit_action", condition=Q(action__isnull=False)),
        )
        constraints = (
            models.CheckConstraint(name="audit_origin_known", condition=Q(origin__in=Origin.values)),
            models.CheckConstraint(name="audit_outcome_known", condition=Q(outcome__in=Outcome.values)),
            models.CheckConstraint(name="audit_says_what", condition=~Q(verb="") & ~Q(kind="")),
            models.CheckConstraint(name="audit_counts", condition=Q(count__isnull=True) | Q(count__gte=0)),
        )

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.target}".rstrip()


class Quarantine(models.Model):
    """An execution that failed too often. It is not refreshed until it is released or its time is up."""

    execution = models.OneToOneField(
        Execution,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="quarantine",
        db_constraint=not is_attached(),
    )
    reason = models.TextField()
    attempts = models.IntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_quarantine"
        verbose_name_plural = "quarantine"

    def __str__(self) -> str:
        return f"quarantine of execution {self.execution_id}"


class Release(models.Model):
    """A release from quarantine that reconcile has not seen yet. Reconcile must look at changes from `changed_at`
    on."""

    changed_at = models.DateTimeField()

    class Meta:
        db_table = "execution_release"

    def __str__(self) -> str:
        return f"release of changes from {self.changed_at}"


class Lease(models.Model):
    """The right to do one kind of work, which one process has at a time: `holder`, until `held_until`
    (executions/retention/lease.py)."""

    name = models.CharField(max_length=32, primary_key=True)
    holder = models.TextField(null=True)  # noqa: DJ001  # NULL and held_until NULL: the lease is free
    held_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_lease"
        constraints = (
            models.CheckConstraint(
                name="lease_is_whole",
                condition=Q(holder__isnull=True, held_until__isnull=True)
                | Q(holder__isnull=False, held_until__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"lease of {self.name}"
