"""What the two servers did during a run: their own counters, read before and after."""

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import connection
from redis import Redis

from executions.queue import execution_queue
from tasks.queues import TICKS, WORK

#: What the sampler itself sends each time, to be taken off the counts.
OWN_COMMANDS = {"scard": 2, "llen": 2, "hlen": 1}
SLOW_US = 5_000


@dataclass
class Sample:
    backlog: int
    in_flight: int
    work: int
    ticks: int
    unacked: int

    @property
    def left(self) -> int:
        return self.backlog + self.in_flight

    @property
    def with_broker(self) -> int:
        return self.work + self.ticks + self.unacked


@dataclass
class RedisMeter:
    """Counts commands from its making on; `sample` looks at the queue without disturbing it."""

    client: Redis = field(default_factory=lambda: Redis.from_url(settings.REDIS_URL))
    longest: dict[str, int] = field(default_factory=dict)
    samples: int = 0

    def start(self) -> None:
        self.client.config_set("slowlog-log-slower-than", SLOW_US)
        self.client.config_set("slowlog-max-len", 1000)
        self.client.slowlog_reset()
        self.client.config_resetstat()
        self._cpu = self._used_cpu()

    def sample(self) -> Sample:
        keys = execution_queue().keys
        pipe = self.client.pipeline(transaction=False)
        pipe.scard(keys.queue)
        pipe.scard(keys.processing)
        pipe.llen(WORK)
        pipe.llen(TICKS)
        pipe.hlen("unacked")
        one = Sample(*pipe.execute())
        self.samples += 1
        for name in ("work", "ticks", "unacked", "in_flight"):
            self.longest[name] = max(self.longest.get(name, 0), getattr(one, name))
        return one

    def commands(self) -> dict[str, int]:
        """Calls by command, the most frequent first; scripts count, and so does what they call."""
        stats: dict[str, dict[str, Any]] = self.client.info("commandstats")
        calls = {name.removeprefix("cmdstat_"): int(one["calls"]) for name, one in stats.items()}
        for name, times in OWN_COMMANDS.items():
            calls[name] = calls.get(name, 0) - times * self.samples
        return dict(sorted(calls.items(), key=lambda pair: -pair[1]))

    def busy(self) -> dict[str, float]:
        """Seconds spent in each command, the longest first."""
        stats: dict[str, dict[str, Any]] = self.client.info("commandstats")
        spent = {name.removeprefix("cmdstat_"): one["usec"] / 1e6 for name, one in stats.items()}
        return dict(sorted(spent.items(), key=lambda pair: -pair[1])[:6])

    def cpu(self) -> float:
        return self._used_cpu() - self._cpu

    def slow(self) -> list[str]:
        """The commands that took longer than SLOW_US, as text."""
        return [
            f"{one['duration'] / 1000:.1f} ms {one['command'][:60].decode(errors='replace')}"
            for one in self.client.slowlog_get(1000)
        ]

    def _used_cpu(self) -> float:
        cpu = self.client.info("cpu")
        return float(cpu["used_cpu_user"] + cpu["used_cpu_sys"])


class SqlMeter:
    """Counts statements by pg_stat_statements, and transactions by pg_stat_database."""

    def start(self) -> None:
        self._ask("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self._xacts = self.transactions(since=0)
        self._ask("SELECT pg_stat_statements_reset()")

    def statements(self) -> list[tuple[int, float, str]]:
        """(calls, seconds, text) of each statement but our own, the dearest first."""
        return self._ask(
            "SELECT calls, total_exec_time / 1000,"
            " left(regexp_replace(query, '\\s+', ' ', 'g'), 70)"
            " FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid"
            " WHERE d.datname = current_database() AND query NOT LIKE '%%pg_stat%%'"
            " ORDER BY total_exec_time DESC"
        )

    def transactions(self, since: int | None = None) -> int:
        since = self._xacts if since is None else since
        rows = self._ask(
            "SELECT xact_commit + xact_rollback, sessions FROM pg_stat_database WHERE datname = current_database()"
        )
        return int(rows[0][0]) - since

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall() if cursor.description else []
