"""Readiness: whether this process can do its work, which is to take reports and answer questions.

That needs PostgreSQL with our tables, and nothing else. Without Redis reports are still taken, and reconcile finds
the executions that were not marked. If an outage of Redis made every web process unready, the load balancer would
refuse all reports. So the answer names Redis, and Redis does not decide it.
"""

from dataclasses import dataclass

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from harbor_refresh.executions.database import absence_translated, raise_if_away
from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable
from harbor_refresh.monitoring.flights import Flight, Late
from harbor_refresh.tasks.overview import of_redis

SECONDS = 3.0
APPS = ("harbor_executions", "harbor_tasks")


@dataclass(frozen=True)
class Readiness:
    """`database`: empty if it can be used, else why not. `redis`: the same, for information only."""

    database: str = ""
    redis: str = ""

    @property
    def is_ready(self) -> bool:
        return not self.database


class _Schema:
    """Whether the tables are there. They are looked up until they are found, because they stay."""

    is_there = False

    def missing(self) -> str:
        """Return which migrations are missing, if any."""
        if not self.is_there:
            with absence_translated():
                executor = MigrationExecutor(connection)
            ours = [node for node in executor.loader.graph.leaf_nodes() if node[0] in APPS]
            if plan := executor.migration_plan(ours):
                return f"{len(plan)} migrations are missing: manage.py migrate"
            self.is_there = True
        return ""


schema = _Schema()


def _database() -> str:
    try:
        raise_if_away()
        return schema.missing()
    except DatabaseAway as exc:
        return str(exc)


def _redis() -> str:
    try:
        of_redis.read()
    except QueueUnavailable as exc:
        return str(exc)
    return ""


databases = Flight(_database)
redises = Flight(_redis)


def ready() -> Readiness:
    return Readiness(*(_answer(flight) for flight in (databases, redises)))


def _answer(flight: Flight[str]) -> str:
    try:
        return flight.answer(SECONDS)
    except Late:
        return f"no answer within {SECONDS:g} s"
