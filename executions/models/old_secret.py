from django.db import models
from django.db.models import Q


class OldSecret(models.Model):
    """A secret that a rotation replaced. It signs as well until `signs_until`, so that a receiver that knows only
    this one refuses nothing meanwhile."""

    id = models.BigAutoField(primary_key=True)
    subscription = models.ForeignKey("Subscription", on_delete=models.CASCADE, related_name="old_secrets")
    secret = models.CharField(max_length=200)
    signs_until = models.DateTimeField()

    class Meta:
        db_table = "execution_old_secret"
        # no screen shows these rows, so there is nothing to permit
        default_permissions = ()
        ordering = ("-id",)
        indexes = (
            # the sweep: the secrets that sign no more
            models.Index(fields=["signs_until"], name="old_secret_age"),
        )
        constraints = (models.CheckConstraint(name="old_secret_is_one", condition=~Q(secret="")),)

    def __str__(self) -> str:
        return f"old secret {self.pk} of subscription {self.subscription_id}"
