"""The figures of a row: all meters of a pass, and the arithmetic on what they counted."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from benchmarks import cpu
from benchmarks.meters import RedisMeter, SqlMeter, table_bytes
from benchmarks.rows import Row
from benchmarks.servers import Servers

Pids = dict[str, list[int | None]]


class Meters:
    """Everything that is counted during a pass. The figures of several stretches add up."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.redis = RedisMeter(servers.redis_url)
        self.sql = SqlMeter()
        self.seconds = 0.0
        self.redis_commands: Counter[str] = Counter()
        self.redis_cpu = 0.0
        self.redis_network = 0
        self.cpu: Counter[str] = Counter()
        self.start({})

    def start(self, kinds: Pids) -> None:
        """Begin a stretch, and discard one that was begun and not stopped. `kinds` are the measured processes
        beside the servers."""
        self._kinds = self._servers.pids | kinds
        self.redis.start()
        if not self.seconds:
            self.sql.start()
        self._used = cpu.used(self._kinds)
        self._began = monotonic()

    def stop(self, ended: float | None = None, end: Callable[[], None] = lambda: None) -> None:
        """End a stretch now, or at the given moment of the monotonic clock. `end` stops processes that still work;
        it is called after the time is taken and before the counters are read."""
        self.seconds += (ended or monotonic()) - self._began
        self.cpu.update(cpu.spent(self._used, cpu.used(self._kinds)))
        end()
        self.redis.stop()
        self.redis_commands.update(self.redis.commands_by_kind)
        self.redis_cpu += self.redis.cpu_seconds
        self.redis_network += self.redis.network_bytes

    def fill(self, row: Row) -> None:
        """Write the figures into the row. Call it when the measured processes have ended, because a session may
        report its transactions to PostgreSQL's statistics only when it ends."""
        self.sql.stop()
        row.seconds = round(self.seconds, 4)
        row.redis_commands = self.redis_commands.total()
        row.redis_cpu_seconds = round(self.redis_cpu, 4)
        row.sql_statements = self.sql.count
        row.extra |= {
            "redis_commands_by_kind": dict(self.redis_commands.most_common()),
            "sql_counted": self.sql.counted,
            "redis_network_bytes": self.redis_network,
            "wal_bytes": self.sql.wal_bytes,
            "table_bytes": table_bytes(),
            "cpu_seconds": {kind: round(seconds, 2) for kind, seconds in self.cpu.items()},
        }


@contextmanager
def metered(servers: Servers) -> Iterator[Meters]:
    meters = Meters(servers)
    try:
        yield meters
    finally:
        meters.redis.close()


def rate(row: Row, done: int) -> None:
    """Set the rate of what was done in the time it took; nothing is extrapolated."""
    row.extra["executions_done"] = done
    row.executions_per_second = round(done / row.seconds, 1) if row.seconds else None


def duplicates(row: Row, refreshes: int, done: int) -> None:
    """Set the refreshes beyond the first of each execution.

    When a cycle was stopped, an execution may be done before its refresh is counted. The difference is then
    negative and is set to 0.
    """
    row.duplicates = max(0, refreshes - done)
    row.extra |= {
        "refreshes": refreshes,
        "duplicates_share": round(row.duplicates / refreshes, 4) if refreshes else 0.0,
    }


def split_range(count: int, parts: int) -> list[tuple[int, int]]:
    """Split the numbers from 1 to `count` into so many even ranges: (first, last)."""
    return [(1 + count * part // parts, count * (part + 1) // parts) for part in range(parts)]
