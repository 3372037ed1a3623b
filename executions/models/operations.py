"""What people and programs do: verbs, the audit log, the quarantine, leases; and what guards requests: tokens, and
the keys of requests that were received once."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.execution import OF_EXECUTION, Execution, OwnRow

MAX_NAME = 150


class Origin(models.TextChoices):
    """Where it was asked for."""

    API = "api"
    ADMIN = "admin"
    TERMINAL = "terminal"


MAX_WORD = 32
MAX_TARGET = 200
MAX_DETAIL = 1_000


class Outcome(models.TextChoices):
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"


class AuditEntry(models.Model):
    """What a person, or a program with a token, did: by whom, from where, what, to what, and how it ended. It
    commits in the transaction of what it tells. `verb` and `kind` have no constraint here, because other apps add
    words of their own.

    `count`: how many rows were affected; NULL if that is not a number of rows, or not known yet.
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
    #: Not stored: the act changed nothing, so `noted` writes no entry.
    skip = False

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
        )
        constraints = (
            models.CheckConstraint(name="audit_origin_known", condition=Q(origin__in=Origin.values)),
            models.CheckConstraint(name="audit_outcome_known", condition=Q(outcome__in=Outcome.values)),
            models.CheckConstraint(name="audit_says_what", condition=~Q(verb="") & ~Q(kind="")),
            models.CheckConstraint(name="audit_counts", condition=Q(count__isnull=True) | Q(count__gte=0)),
        )

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.target}".rstrip()


class Quarantine(OwnRow):
    """An execution that failed too often. It is not refreshed until it is released or its time is up."""

    execution = models.OneToOneField(Execution, primary_key=True, related_name="quarantine", **OF_EXECUTION)
    reason = models.TextField()
    attempts = models.IntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_quarantine"
        verbose_name_plural = "quarantine"


class Release(OwnRow):
    """A release from quarantine that reconcile has not seen yet. Reconcile must look at changes from `changed_at`
    on."""

    changed_at = models.DateTimeField()

    class Meta:
        db_table = "execution_release"


class Lease(OwnRow):
    """The right to do one kind of work, which one process has at a time: `holder`, until `held_until`
    (executions/lifecycle/lease.py)."""

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


class ApiToken(models.Model):
    """A program that may use the API. Only a hash of its token is stored, so the token cannot be shown again."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=100, unique=True, help_text="What uses it, for example: runners in Berlin.")
    # SHA-256 without salt is enough for 256 random bits, and lets the index find the token
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False, help_text="The beginning of the token.")
    may_read = models.BooleanField("read", default=True, help_text="See executions, tasks, history and the queue.")
    may_report = models.BooleanField(
        "report", default=False, help_text="Create executions, add tasks, report their status."
    )
    may_manage = models.BooleanField(
        "manage", default=False, help_text="Stop, finish, refresh, retry and delete; subscriptions and deliveries."
    )
    created_at = models.DateTimeField("created", db_default=Now(), editable=False)
    created_by = models.CharField(max_length=150, blank=True, default="", editable=False)
    expires_at = models.DateTimeField("expires", null=True, blank=True, help_text="Empty: it does not expire.")
    revoked_at = models.DateTimeField("revoked", null=True, blank=True, editable=False)
    # within a minute: it is written at most once a minute
    last_used_at = models.DateTimeField("last used", null=True, blank=True, editable=False)

    class Meta:
        db_table = "execution_api_token"
        verbose_name = "API token"
        constraints = (
            models.CheckConstraint(
                name="api_token_may_something",
                condition=Q(may_read=True) | Q(may_report=True) | Q(may_manage=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"


class IdempotencyKey(OwnRow):
    """An answered request, by the key that its sender chose. The same request again gets the same answer."""

    id = models.BigAutoField(primary_key=True)
    # the caller's name, because two callers may choose the same key
    caller = models.CharField(max_length=120)
    key = models.CharField(max_length=200)
    # SHA-256 of the request, because the key of another request is a mistake of the sender
    request = models.BinaryField(max_length=32)
    answer = models.JSONField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "execution_idempotency_key"
        constraints = (
            # of two requests with one key at once, the second waits for the first
            models.UniqueConstraint(fields=["caller", "key"], name="idempotency_key_once"),
        )
        indexes = (
            # the sweep: the keys that are too old to be of use
            models.Index(fields=["at"], name="idempotency_key_age"),
        )
