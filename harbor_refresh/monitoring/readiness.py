"""Readiness: whether this process can do its work, which is to take reports and answer questions.

That needs PostgreSQL with our tables, and nothing else. Without Redis reports are still taken, and reconcile finds
the executions that were not marked. If an outage of Redis made every web process unready, the load balancer would
refuse all reports. So the answer names Redis, and Redis does not decide it.
"""

from functools import partial

from harbor_refresh.monitoring.flights import Flight, Late
from harbor_refresh.tasks.checks import postgres, redis_servers  # noqa: F401  # they register the checks
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import REGISTERED, examine, told

SECONDS = 3.0


def _trouble(facts: Facts, *checks: str) -> str:
    results = examine([REGISTERED[name] for name in checks], facts)
    return " ".join(told(problem)["what"] for result in results for problem in result.problems)


databases = Flight(lambda: _trouble(Facts(), "database.reachable", "database.writable", "tables.migrations"))
#: All probes share the connection of these facts.
redises = Flight(partial(_trouble, Facts(), "redis.reachable"))


def troubles() -> dict[str, str]:
    """Return why each server cannot be used; an empty text if it can. The process is ready if the database can."""
    found = {}
    for name, flight in (("database", databases), ("redis", redises)):
        try:
            found[name] = flight.answer(SECONDS)
        except Late:
            found[name] = f"no answer within {SECONDS:g} s"
    return found
