"""What a seed means: which faults begin when. Each fault has random numbers of its own, so that leaving one out
changes no other."""

from collections.abc import Collection
from dataclasses import dataclass
from random import Random

#: How often each fault comes, beside the others.
WEIGHTS = {
    "redis_snapshot": 8,
    "redis_restore": 4,
    "redis_flush": 1,
    "redis_lose_key": 4,
    "redis_freeze": 2,
    "redis_refuse_writes": 1,
    "redis_failover": 2,
    "postgres_restart": 2,
    "postgres_promote": 1,
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
        """The same numbers each time it is asked for."""
        return Random(self.seed)


def plan(seed: int, seconds: float, without: Collection[str] = ()) -> list[Fault]:
    unknown = set(without) - set(WEIGHTS)
    if unknown:
        raise ValueError(f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(WEIGHTS)}")
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
