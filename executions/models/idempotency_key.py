from django.db import models
from django.db.models.functions import Now


class IdempotencyKey(models.Model):
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

    def __str__(self) -> str:
        return self.key
