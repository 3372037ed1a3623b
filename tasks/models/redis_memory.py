from uuid import uuid4

from django.db import models
from django.db.models import Q


class RedisMemory(models.Model):
    """One row: what was last seen of the memory of Redis, so that an older one is noticed when it comes back.

    `looked_up` is the epoch for which what Redis had forgotten was looked up in the database. `database` is the
    name of this database in messages: a worker leaves alone what was sent for another.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    epoch = models.BigIntegerField(default=0)
    sequence = models.BigIntegerField(default=0)
    looked_up = models.BigIntegerField(default=0)
    database = models.UUIDField(default=uuid4)

    class Meta:
        db_table = "execution_redis_memory"
        constraints = (models.CheckConstraint(name="redis_memory_is_one_row", condition=Q(id=1)),)

    def __str__(self) -> str:
        return f"epoch {self.epoch}, {self.sequence}"
