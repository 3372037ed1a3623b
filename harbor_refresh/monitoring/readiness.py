"""Readiness: whether this process can do its work, which is to take reports and answer questions.

That needs PostgreSQL with our tables, and nothing else. Without Redis reports are still taken, and reconcile finds
the executions that were not marked. If an outage of Redis made every web process unready, the load balancer would
refuse all reports. So the answer names Redis, and Redis does not decide it.

These are checks of the registry (tasks/checks) that have Shown.READY.
"""

from dataclasses import dataclass
from functools import cache, partial

from harbor_refresh.monitoring.flights import Flight, Late
from harbor_refresh.tasks.checks.examination import selection
from harbor_refresh.tasks.checks.facts import Facts, RedisServer
from harbor_refresh.tasks.checks.registry import Shown, examine, told

SECONDS = 3.0
MIGRATIONS = "tables.migrations"


@dataclass(frozen=True)
class Readiness:
    """`database`: empty if it can be used, else why not. `redis`: the same, for information only."""

    database: str = ""
    redis: str = ""

    @property
    def is_ready(self) -> bool:
        return not self.database


#: Checks that need not be made again: the tables are looked up until they are found, because they stay.
passed: set[str] = set()


@cache
def _redis() -> RedisServer:
    """Probes come every few seconds, and share one connection."""
    return Facts().redis


def _trouble(*groups: str) -> str:
    chosen = [one for one in selection(Shown.READY) if one.id.startswith(groups) and one.id not in passed]
    facts = Facts()
    facts.redis = _redis()
    results = list(examine(chosen, facts))
    passed.update(one.check.id for one in results if one.check.id == MIGRATIONS and one.verdict == "sound")
    return " ".join(told(problem)["what"] for result in results for problem in result.problems)


databases = Flight(partial(_trouble, "database.", "tables."))
redises = Flight(partial(_trouble, "redis."))


def ready() -> Readiness:
    return Readiness(*(_answer(flight) for flight in (databases, redises)))


def _answer(flight: Flight[str]) -> str:
    try:
        return flight.answer(SECONDS)
    except Late:
        return f"no answer within {SECONDS:g} s"
