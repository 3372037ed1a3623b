"""The machines of a simulation, and what they can do."""

from dataclasses import dataclass

GB = 10**9


@dataclass(frozen=True)
class Fleet:
    """How many machines, of which size. The defaults are those of a small fleet in one data centre; their cores
    are as fast as those of the measurements."""

    workers: int
    processes: int = 2
    #: All programs share so many cores, as on the machine of the measurements; None: each has its own.
    shared_cores: int | None = None
    #: Redis servers that share the queue; each has its own keys and its own tick.
    shards: int = 1
    #: Whether the broker has a Redis of its own.
    has_own_broker: bool = False
    #: Whether workers tell each other that they live, as Celery does unless it is started with
    #: `--without-gossip`.
    has_gossip: bool = False
    #: PostgreSQL servers, each with a share of the executions.
    databases: int = 1
    database_cores: int = 16
    database_memory: float = 64 * GB
    #: What its disk reads at random places, and writes to the WAL.
    disk_reads: float = 20_000
    wal_bytes: float = 0.5 * GB
    #: Whether neighbouring ids are claimed together: a chunk then reads neighbouring rows, whatever the table's
    #: size.
    has_ranges: bool = False
    #: What a network card carries, each way: 10 Gbit/s.
    network_bytes: float = 1.25 * GB
    #: Standbys that receive the WAL of each database over its network.
    replicas: int = 1
    round_trip: float = 0.0002
    chunk: int = 6_000
    depth: int = 3

    @property
    def nodes(self) -> int:
        return self.workers * self.processes


def one_machine(workers: int, processes: int = 2) -> Fleet:
    """The machine of docs/benchmarks.md."""
    return Fleet(workers=workers, processes=processes, shared_cores=2, round_trip=0.00005)
