from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.action import MAX_NAME

#: As in tasks/jobs/options.py.
MAX_QUEUE = 255
MAX_REASON = 500


class Pause(models.Model):
    """A queue of the broker that is paused: while the row exists, its work waits. See tasks/pauses.

    The queue of the refreshes stands for refreshing itself: while it is paused, no execution is claimed.
    """

    queue = models.CharField(max_length=MAX_QUEUE, primary_key=True)
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=MAX_NAME, db_default="")
    reason = models.CharField(max_length=MAX_REASON, db_default="")

    class Meta:
        db_table = "execution_pause"
        verbose_name = "pause of a queue"
        verbose_name_plural = "queue"
        default_permissions = ("view", "change")
        constraints = (models.CheckConstraint(name="pause_names_a_queue", condition=~Q(queue="")),)

    def __str__(self) -> str:
        return f"{self.queue} is paused"
