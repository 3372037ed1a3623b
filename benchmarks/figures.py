"""The arithmetic of a row, and the meters of a pass put together."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from benchmarks import cpu
from benchmarks.ground import Ground
from benchmarks.meters import RedisMeter, SqlMeter
from benchmarks.rows import Row

Pids = dict[str, list[int | None]]


class Meters:
    """Everything that is counted while something runs. What runs in several stretches adds up."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.redis = RedisMeter(ground.redis_url)
        self.sql = SqlMeter()
        self.seconds = 0.0
        self.redis_commands: Counter[str] = Counter()
        self.redis_cpu = 0.0
        self.cpu: Counter[str] = Counter()
        self.start({})

    def start(self, kinds: Pids) -> None:
        """Begin a stretch; what ran before it and was not stopped is forgotten. `kinds` are the processes
        that are measured, beside the servers."""
        self._kinds = self._ground.pids | kinds
        self.redis.start()
        if not self.seconds:
            self.sql.start()
        self._used = cpu.used(self._kinds)
        self._began = monotonic()

    def stop(self, ended: float | None = None, end: Callable[[], None] = lambda: None) -> None:
        """End a stretch, at this moment or at that of the monotonic clock. `end` is called when the time is
        taken and before the counters are: it ends those who still work."""
        self.seconds += (ended or monotonic()) - self._began
        self.cpu.update(cpu.spent(self._used, cpu.used(self._kinds)))
        end()
        self.redis.stop()
        self.redis_commands.update(self.redis.commands_by_kind)
        self.redis_cpu += self.redis.cpu_seconds

    def fill(self, row: Row) -> None:
        """When the processes that were measured have ended: PostgreSQL may hear of a transaction only when
        its session ends."""
        self.sql.stop()
        row.seconds = round(self.seconds, 4)
        row.redis_commands = self.redis_commands.total()
        row.redis_cpu_seconds = round(self.redis_cpu, 4)
        row.sql_statements = self.sql.count
        row.extra |= {
            "redis_commands_by_kind": dict(self.redis_commands.most_common()),
            "sql_counted": self.sql.counted,
            "cpu_seconds": {kind: round(seconds, 2) for kind, seconds in self.cpu.items()},
        }


@contextmanager
def metered(ground: Ground) -> Iterator[Meters]:
    meters = Meters(ground)
    try:
        yield meters
    finally:
        meters.redis.close()


def rate(row: Row, done: int) -> None:
    """What was done in the time it took; nothing is extrapolated."""
    row.extra["executions_done"] = done
    row.executions_per_second = round(done / row.seconds, 1) if row.seconds else None


def duplicates(row: Row, refreshes: int, done: int) -> None:
    """Refreshes beyond the first of each execution. In the middle of a cycle that was ended, an execution
    may be done and its refresh not told yet: that is not less than none."""
    row.duplicates = max(0, refreshes - done)
    row.extra |= {
        "refreshes": refreshes,
        "duplicates_share": round(row.duplicates / refreshes, 4) if refreshes else 0.0,
    }


def shares(count: int, parts: int) -> list[tuple[int, int]]:
    """The numbers from 1 to `count` in so many even ranges: (first, last)."""
    return [(1 + count * part // parts, count * (part + 1) // parts) for part in range(parts)]
