"""What guards requests: tokens of the API, and the keys of requests and messages that were received once."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.execution import OwnRow


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


class ReceivedMessage(OwnRow):
    """The id of a signed message whose reports are in the database, so that the message is not taken twice.

    `at` is the timestamp that the message was signed with, or the time of its receipt if that is later. A message
    is accepted until five minutes after its timestamp; ten minutes after `at` its row is not needed any more.
    """

    KEPT = timedelta(minutes=10)

    id = models.CharField(primary_key=True, max_length=255)
    at = models.DateTimeField()

    class Meta:
        db_table = "execution_received_message"
        # forgetting: the oldest first, in batches
        indexes = (models.Index(fields=["at"], name="received_message_age"),)
