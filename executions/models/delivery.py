from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.subscription import Subscription
from harbor_refresh.executions.status import MAX_VENDOR, Status


class State(models.TextChoices):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class Delivery(models.Model):
    """One status change, for one subscription.

    It outlives its execution: what is here is delivered even if the execution is deleted meanwhile.

    `next_at` is when a pending delivery is sent next. A claim moves it to the end of its lease and counts an
    attempt. The number of the attempt is the claim's token: a result counts only for the attempt that it names.
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
            # resend_deliveries.sql and the list of dead letters
            models.Index(fields=["subscription", "id"], name="delivery_dead", condition=Q(state=State.DEAD)),
            # forget_deliveries.sql: the oldest of those that have ended
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
