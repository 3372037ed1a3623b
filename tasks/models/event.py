from django.db import models


class Kind(models.TextChoices):
    NODE_DIED = "node_died"
    RECOVERED = "recovered"
    JOBS_RECOVERED = "jobs_recovered"
    DRIFT = "drift"
    QUARANTINED = "quarantined"
    PAROLED = "paroled"
    DELIVERIES_DIED = "deliveries_died"


class Event(models.Model):
    """What went wrong or healed, one row for each kind, subject and minute (tasks/overview/events.py).

    `count` adds up what happened in that minute: executions, jobs or deliveries. The subject is a node, or empty.
    """

    pk = models.CompositePrimaryKey("minute", "kind", "subject")
    minute = models.DateTimeField()
    kind = models.CharField(max_length=32, choices=Kind)
    subject = models.CharField(max_length=255, db_default="")
    count = models.BigIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        db_table = "service_event"
        constraints = (models.CheckConstraint(name="event_kind_known", condition=models.Q(kind__in=Kind.values)),)

    def __str__(self) -> str:
        return f"{self.count} {self.kind} at {self.minute}"
