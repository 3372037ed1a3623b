from django.db import models
from django.db.models import Q


class Counter(models.Model):
    """A part of a counter (executions/counters.py). The counter is the sum of its shards.

    `series` are its labels, as in `result=changed`. Of a histogram, `le=0.5` counts what was observed up to that
    bound and above the one before it, and `sum` is the total in microseconds.
    """

    pk = models.CompositePrimaryKey("metric", "series", "shard")
    metric = models.TextField()
    series = models.TextField()
    shard = models.IntegerField()
    amount = models.BigIntegerField()

    class Meta:
        db_table = "execution_counter"
        constraints = (models.CheckConstraint(name="counter_only_grows", condition=Q(amount__gte=1)),)

    def __str__(self) -> str:
        return f"{self.metric} {self.series}"
