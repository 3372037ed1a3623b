"""Receivers of status changes, and what is on its way to each."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from harbor_refresh.executions.models.execution import OwnRow
from harbor_refresh.executions.status import FINAL, MAX_VENDOR, Status

try:
    from django.contrib.postgres.fields import ArrayField
except ImportError as exc:  # it names psycopg2, for which Django looks last
    raise ImproperlyConfigured(
        'No driver of PostgreSQL can be loaded. Type: pip install "psycopg[binary]"'
    ) from exc


class TextList(ArrayField):  # type: ignore[type-arg]
    """A list of texts, for which a host need not install `django.contrib.postgres`."""

    def _check_postgres_installed(self, *_: object) -> list[Any]:
        return []

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.contrib.postgres.fields.ArrayField", args, kwargs


class Kind(models.TextChoices):
    WEBHOOK = "webhook"
    HANDLER = "handler"
    CALLBACK = "callback"


class Payload(models.TextChoices):
    STANDARD = "standard", "Standard Webhooks"
    SLACK = "slack", "Slack"


def final_statuses() -> list[str]:
    return [str(status) for status in FINAL]


class Subscription(models.Model):
    """A receiver of status changes: a webhook, or a Python function (news/handlers.py). One of the kind `callback`
    is told only of executions that have a callback of it (news/callbacks.py).

    An empty list of vendors, statuses or triggers matches all. `secret` signs the requests, so it is stored as it
    is. After a rotation `old_secret` signs as well until `old_secret_ends_at`.

    The circuit: `failures` counts failed requests since the last answer, `failing_since` is the first of them, and
    nothing is sent before `retry_at`. For a handler, `retry_at` tells until when a worker runs it or was asked to.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.WEBHOOK, editable=False)
    url = models.CharField("URL", max_length=2000, blank=True, default="")
    secret = models.CharField(max_length=200, blank=True, default="", editable=False)
    old_secret = models.CharField(max_length=200, blank=True, default="", db_default="", editable=False)
    old_secret_ends_at = models.DateTimeField(null=True, editable=False)
    handler = models.CharField(max_length=400, blank=True, default="", editable=False)
    payload = models.CharField(max_length=16, choices=Payload, default=Payload.STANDARD)
    vendor_types = TextList(models.CharField(max_length=MAX_VENDOR), default=list, blank=True)
    statuses = TextList(models.CharField(max_length=16, choices=Status), default=final_statuses, blank=True)
    triggers = TextList(models.CharField(max_length=16), default=list, blank=True)
    enabled = models.BooleanField(default=True, help_text="If not, changes of that time are never sent.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    failures = models.IntegerField(default=0, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    retry_at = models.DateTimeField(null=True, editable=False)
    #: Since when no worker has the code of this handler. Until it is back, the handler is not told.
    missing_since = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "execution_subscription"
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                name="subscription_has_its_target",
                condition=(
                    Q(kind=Kind.WEBHOOK, handler="", missing_since__isnull=True) & ~Q(url="") & ~Q(secret="")
                )
                | (Q(kind__in=(Kind.HANDLER, Kind.CALLBACK), url="", secret="") & ~Q(handler="")),
            ),
            models.CheckConstraint(
                name="subscription_fails_since_its_first_failure",
                condition=Q(failures=0, failing_since__isnull=True)
                | Q(failures__gt=0, failing_since__isnull=False),
            ),
            # one row for each function
            models.UniqueConstraint(
                name="subscription_once_a_handler", fields=["kind", "handler"], condition=~Q(kind=Kind.WEBHOOK)
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def old_secret_until(self) -> datetime | None:
        """Until when the old secret signs as well. None: the secret of this row signs alone."""
        ends_at = self.old_secret_ends_at
        return ends_at if ends_at and ends_at > timezone.now() else None

    @property
    def live_secrets(self) -> list[str]:
        """The secrets that sign now, the newest first."""
        return [self.secret, self.old_secret] if self.old_secret_until else [self.secret]


class State(models.TextChoices):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class Delivery(models.Model):
    """One status change, for one subscription. It outlives its execution.

    A claim moves `next_at` to the end of its lease and counts an attempt (claims.py).
    """

    id = models.BigAutoField(primary_key=True)
    subscription = models.ForeignKey(
        Subscription, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    execution_id = models.BigIntegerField("execution")
    vendor_type = models.CharField("vendor", max_length=MAX_VENDOR)
    revision = models.BigIntegerField()
    from_status = models.CharField("from", max_length=16, choices=Status)
    to_status = models.CharField("to", max_length=16, choices=Status)
    changed_at = models.DateTimeField()
    state = models.CharField(max_length=16, choices=State, default=State.PENDING, db_default=State.PENDING)
    attempts = models.IntegerField(default=0, db_default=0)
    next_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    last_error = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "execution_delivery"
        verbose_name_plural = "deliveries"
        indexes = (
            # claim_deliveries.sql: what is due for a subscription, the longest waiting first
            models.Index(
                fields=["subscription", "next_at", "id"], name="delivery_due", condition=Q(state=State.PENDING)
            ),
            # claim_deliveries.sql: whether an earlier delivery of the execution is pending
            models.Index(
                fields=["subscription", "execution_id", "revision"],
                name="delivery_in_order",
                condition=Q(state=State.PENDING),
            ),
            # claims.py and the list of dead letters
            models.Index(fields=["subscription", "id"], name="delivery_dead", condition=Q(state=State.DEAD)),
            # housekeeping.py: the oldest of those that have ended
            models.Index(fields=["ended_at"], name="delivery_ended", condition=~Q(state=State.PENDING)),
        )
        constraints = (
            # its index also serves the deletion of a subscription
            models.UniqueConstraint(
                fields=["subscription", "execution_id", "revision"], name="delivery_once_a_revision"
            ),
            models.CheckConstraint(
                name="delivery_waits_until_it_ends",
                condition=Q(state=State.PENDING, next_at__isnull=False, ended_at__isnull=True)
                | Q(state__in=(State.DELIVERED, State.DEAD), next_at__isnull=True, ended_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"revision {self.revision} of execution {self.execution_id} for subscription {self.subscription_id}"

    @property
    def message_id(self) -> str:
        """The same for every attempt, so that a receiver knows what it has had."""
        return f"status_{self.execution_id}_{self.revision}_{self.subscription_id}"


class Callback(OwnRow):
    """What is called when one execution ends with one of these statuses: a function, by its name, and its
    arguments (executions/news/callbacks.py). Without statuses it is called at the first failed task.

    It may outlive its execution: a delivery that is not made when the execution is deleted still finds it.
    """

    id = models.BigAutoField(primary_key=True)
    execution_id = models.BigIntegerField("execution")
    handler = models.CharField(max_length=400)
    statuses = TextList(models.CharField(max_length=16, choices=Status))
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    #: Whether it gets what has ended before its own arguments.
    takes_change = models.BooleanField(default=True)
    #: When its execution was deleted, if a delivery waited then.
    orphaned_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "execution_callback"
        default_permissions = ()
        indexes = (
            # write_deliveries.sql, and a call
            models.Index(fields=["execution_id", "handler"], name="callback_of_execution"),
            # housekeeping: the oldest first
            models.Index(fields=["orphaned_at"], name="callback_orphaned", condition=Q(orphaned_at__isnull=False)),
        )
        constraints = (
            models.CheckConstraint(
                name="callback_is_of_an_end", condition=Q(statuses__contained_by=[str(status) for status in FINAL])
            ),
        )
