from django.db import models
from django.db.models import Q

from harbor_refresh.executions.attachment import is_attached
from harbor_refresh.executions.models.execution import Execution


class VendorKey(models.Model):
    """The object of an execution whose id is text, such as a UUID (executions/vendor_keys.py)."""

    execution = models.OneToOneField(
        Execution,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="text_key",
        db_constraint=not is_attached(),
    )
    key = models.CharField(max_length=255)

    class Meta:
        db_table = "execution_vendor_key"
        # no screen shows these rows, so there is nothing to permit
        default_permissions = ()
        indexes = (
            # the executions of a key, the newest first: Filter.apply, and the search of the admin
            models.Index(fields=["key", "-execution"], name="vendor_key_newest"),
        )
        constraints = (models.CheckConstraint(name="vendor_key_is_text", condition=~Q(key="")),)

    def __str__(self) -> str:
        return f"vendor key {self.key} of execution {self.execution_id}"
