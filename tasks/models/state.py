"""The state of the service: events, samples for the charts, pauses, the watermark of reconcile, Redis's memory."""

from uuid import uuid4

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from harbor_refresh.executions.models.operations import MAX_NAME


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


class Sample(models.Model):
    """The state of the service at one moment, for the charts (tasks/overview/samples.py).

    A value of Redis is NULL if Redis was away. The counters only grow: `refreshed`, `failed` and `recovered`
    executions; and `latency`, the buckets of the histogram `report_to_true_seconds` (executions/news/counters.py).
    What happened between two samples is their difference.
    """

    at = models.DateTimeField(primary_key=True)
    backlog = models.BigIntegerField(null=True)
    in_flight = models.BigIntegerField(null=True)
    oldest_waiting = models.FloatField(null=True)
    nodes = models.IntegerField(null=True)
    refreshed = models.BigIntegerField()
    failed = models.BigIntegerField()
    recovered = models.BigIntegerField()
    latency = models.JSONField()

    class Meta:
        db_table = "service_sample"

    def __str__(self) -> str:
        return f"the state at {self.at}"


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


class RedisMemory(models.Model):
    """One row: the memory of Redis as last read, so that a Redis that comes back older is noticed.

    `looked_up` is the last epoch for which the database was searched for what Redis had forgotten. `database`
    is the name of this database in messages; a worker leaves messages for another database alone. `made_in` is
    where it was when it got that name, see jobs/records/own_database.py.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    epoch = models.BigIntegerField(default=0)
    sequence = models.BigIntegerField(default=0)
    looked_up = models.BigIntegerField(default=0)
    database = models.UUIDField(default=uuid4)
    made_in = models.CharField(max_length=64, default="", db_default="")

    class Meta:
        db_table = "execution_redis_memory"
        constraints = (models.CheckConstraint(name="redis_memory_is_one_row", condition=Q(id=1)),)

    def __str__(self) -> str:
        return f"epoch {self.epoch}, {self.sequence}"


class Watermark(models.Model):
    """One row: every task change committed before this moment has been found to agree with its execution.

    `last_pass_at` and `timeline` are the database's time and WAL timeline when the last pass began: they name the
    clock and the server of this moment. `last_drifted` executions of that pass had lost their mark.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    settled_before = models.DateTimeField()
    last_pass_at = models.DateTimeField(null=True)
    timeline = models.CharField(max_length=8, db_default="")
    last_drifted = models.BigIntegerField(null=True)

    class Meta:
        db_table = "execution_watermark"
        constraints = (models.CheckConstraint(name="watermark_is_one_row", condition=Q(id=1)),)

    def __str__(self) -> str:
        return f"settled before {self.settled_before}"
