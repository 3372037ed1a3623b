from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


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
