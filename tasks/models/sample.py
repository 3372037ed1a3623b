from django.db import models


class Sample(models.Model):
    """The state of the service at one moment, for the charts (tasks/overview/samples.py).

    A value of Redis is NULL if Redis was away. The counters only grow: `refreshed`, `failed` and `recovered`
    executions; and `latency`, the buckets of the histogram `report_to_true_seconds` (executions/counters.py). What
    happened between two samples is their difference.
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
