from datetime import datetime

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from harbor_refresh.executions.models.old_secret import OldSecret
from harbor_refresh.executions.models.without_an_app import TextList
from harbor_refresh.executions.status import FINAL, MAX_VENDOR, Status


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
    """A receiver of status changes: a webhook, or a Python function (executions/handlers.py). A function of the
    kind `callback` is told only of executions that have a callback of it (executions/callbacks.py).

    An empty list of vendors, statuses or triggers matches all. `secret` signs the requests, so it is stored as it
    is. It is shown when it is made and never again. `rotations` counts how often it was replaced; the secrets that
    it replaced are `old_secrets`.

    The circuit: `failures` counts failed requests since the last answer, `failing_since` is the first of them, and
    nothing is sent before `retry_at`. For a handler, `retry_at` tells until when a worker runs it or was asked to.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.WEBHOOK, editable=False)
    url = models.CharField("URL", max_length=2000, blank=True, default="")
    secret = models.CharField(max_length=200, blank=True, default="", editable=False)
    rotations = models.IntegerField(default=0, db_default=0, editable=False)
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
    def live_secrets(self) -> list[str]:
        """The secrets that sign now, the newest first: the secret of this row, and old ones until their time."""
        return list(dict.fromkeys([self.secret, *(one.secret for one in self._live_old_secrets)]))

    @property
    def old_secret_until(self) -> datetime | None:
        """Until when an old secret signs as well. None: the secret of this row signs alone."""
        return max((one.signs_until for one in self._live_old_secrets), default=None)

    @property
    def _live_old_secrets(self) -> list[OldSecret]:
        now = timezone.now()
        return [one for one in self.old_secrets.all() if one.signs_until > now]
