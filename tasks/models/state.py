"""The state of the service: events, samples for the charts, pauses, and the watermark of reconcile."""

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.execution import OwnRow
from harbor_refresh.executions.models.operations import MAX_NAME


class Kind(models.TextChoices):
    NODE_DIED = "node_died"  # written by the release before
    RECOVERED = "recovered"
    JOBS_RECOVERED = "jobs_recovered"
    DRIFT = "drift"
    QUARANTINED = "quarantined"
    RELEASED_FROM_QUARANTINE = "released_from_quarantine"
    DELIVERIES_DIED = "deliveries_died"


class Event(OwnRow):
    """What went wrong or healed, one row for each kind and minute (tasks/news/events.py). `count` adds up
    executions, jobs or deliveries. The subject is empty."""

    pk = models.CompositePrimaryKey("minute", "kind", "subject")
    minute = models.DateTimeField()
    kind = models.CharField(max_length=32, choices=Kind)
    subject = models.CharField(max_length=255, db_default="")
    count = models.BigIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        db_table = "service_event"
        constraints = (models.CheckConstraint(name="event_kind_known", condition=models.Q(kind__in=Kind.values)),)


class Sample(OwnRow):
    """The state of the service at one moment, for the charts (tasks/news/samples.py). `backlog` is NULL if
    Redis was down. The counters only grow: `refreshed`, `failed` and `recovered` executions; and `latency`, the
    buckets of the histogram `report_to_true_seconds` (executions/news/counters.py)."""

    at = models.DateTimeField(primary_key=True)
    backlog = models.BigIntegerField(null=True)
    refreshed = models.BigIntegerField()
    failed = models.BigIntegerField()
    recovered = models.BigIntegerField()
    latency = models.JSONField()

    class Meta:
        db_table = "service_sample"


MAX_QUEUE = 255
MAX_REASON = 500


class Pause(models.Model):
    """A queue of the broker that is paused: while the row exists, its work waits (tasks/operations). While that of
    the refreshes is paused, no execution is claimed."""

    queue = models.CharField(max_length=MAX_QUEUE, primary_key=True)
    at = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=MAX_NAME, db_default="")
    reason = models.CharField(max_length=MAX_REASON, db_default="")
    #: How long it has been paused (tasks/operations/pauses.py).
    lasts: timedelta

    class Meta:
        db_table = "execution_pause"
        verbose_name = "pause of a queue"
        verbose_name_plural = "queue"
        default_permissions = ("view", "change")
        constraints = (models.CheckConstraint(name="pause_names_a_queue", condition=~Q(queue="")),)

    def __str__(self) -> str:
        return f"{self.queue} is paused"


class Watermark(OwnRow):
    """One row: every task change committed before this moment has been found to agree with its execution.
    `last_pass_at` and `timeline` are the database's time and WAL timeline when the last pass began: they name the
    clock and the server of this moment. `last_drifted` executions of that pass had lost their mark."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    settled_before = models.DateTimeField()
    last_pass_at = models.DateTimeField(null=True)
    timeline = models.CharField(max_length=8, db_default="")
    last_drifted = models.BigIntegerField(null=True)

    class Meta:
        db_table = "execution_watermark"
        constraints = (models.CheckConstraint(name="watermark_is_one_row", condition=Q(id=1)),)
