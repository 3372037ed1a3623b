from uuid import uuid4

from django.db import models
from django.db.models import Q


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
