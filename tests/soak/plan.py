"""The plan of a seed: which faults begin when. Each fault has its own random numbers, so that leaving one out
changes no other fault."""

from collections.abc import Collection
from dataclasses import dataclass
from random import Random

#: How often each fault comes, relative to the others.
WEIGHTS = {
    "redis_snapshot": 8,
    "redis_restore": 4,
    "redis_flush": 1,
    "redis_lose_key": 4,
    "redis_freeze": 2,
    "redis_refuse_writes": 1,
    "redis_failover": 2,
    "redis_cut": 3,
    "redis_rubbish": 3,
    "postgres_restart": 2,
    "postgres_promote": 1,
    "postgres_cut": 3,
    "postgres_freeze": 1,
    "postgres_hold_rows": 3,
    "postgres_hold_table": 1,
    "worker_kill": 3,
    "worker_kill_child": 4,
    "worker_freeze": 3,
    "worker_terminate": 2,
    "beat_kill": 1,
    "beat_second": 1,
}
GAPS = (0.5, 3.0)


@dataclass(frozen=True)
class Fault:
    """`at` is in seconds from the beginning."""

    number: int
    at: float
    name: str
    seed: str

    @property
    def random(self) -> Random:
        """A new generator that gives the same numbers each time."""
        return Random(self.seed)


def plan(seed: int, seconds: float, without: Collection[str] = ()) -> list[Fault]:
    random = Random(f"{seed} faults")
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    faults: list[Fault] = []
    at = 2.0
    while at < seconds:
        name = random.choices(names, weights)[0]
        if name not in without:
            faults.append(Fault(len(faults), at, name, f"{seed} fault at {at}"))
        at += random.uniform(*GAPS)
    return faults
