"""Where each part ends: how many executions a second it could carry if it were the only one in the way."""

from benchmarks.scaling.costs import MICRO, Costs
from benchmarks.scaling.fleet import Fleet
from benchmarks.scaling.signs_of_life import signs_of_life
from benchmarks.scaling.storage import reads_of_an_execution

#: The parts, in the order of the page.
PARTS = (
    "Redis",
    "PostgreSQL's processors",
    "PostgreSQL's reads",
    "the WAL",
    "PostgreSQL's network",
    "Redis's network",
)


def limits(fleet: Fleet, executions: int, costs: Costs | None = None) -> dict[str, float]:
    """Return the executions a second that each part carries at most, with so many in the tables and waiting."""
    costs = costs or Costs()
    alive = signs_of_life(fleet, costs)["Redis"]
    databases = fleet.databases
    reads = reads_of_an_execution(fleet, costs, executions)
    sent = costs.postgres_bytes + costs.wal_bytes * (1 + fleet.replicas)
    return {
        "Redis": fleet.shards * max(0.0, 1 - alive) / costs.scripts_seconds(executions // fleet.shards),
        "PostgreSQL's processors": databases
        * fleet.database_cores
        / costs.postgres_seconds(executions // databases),
        "PostgreSQL's reads": databases * fleet.disk_reads / reads if reads else float("inf"),
        "the WAL": databases * fleet.wal_bytes / costs.wal_bytes,
        "PostgreSQL's network": databases * fleet.network_bytes / sent,
        "Redis's network": fleet.shards * fleet.network_bytes / costs.redis_bytes,
    }


def tick_limit(costs: Costs | None = None) -> float:
    """Return the executions a second that one tick claims at most, if Redis answered at once."""
    costs = costs or Costs()
    return 1 / (costs.tick_python * MICRO)
