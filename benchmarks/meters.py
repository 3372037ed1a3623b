"""What the two servers did during a run: their own counters, read before and after.

No counter is reset and nothing is configured, because existing servers may be in use. The counters are those of a
whole server (Redis) or a whole database (PostgreSQL), so on existing servers they include other work.
"""

from collections import Counter
from typing import Any

from django.db import DatabaseError, connection
from redis import Redis


class RedisMeter:
    """Counts commands between `start` and `stop`, without INFO and without the commands named by `uncounted`.

    INFO counts a command that a script calls like a command that a client sends.
    """

    def __init__(self, url: str) -> None:
        self.client = Redis.from_url(url)
        self._own: Counter[str] = Counter()
        self._before: dict[str, Any] = {}

    def start(self) -> None:
        self.client.ping()
        self._own.clear()
        self._before = self._info()

    def stop(self) -> None:
        """Read the counters and set the attributes to the differences."""
        now = self._info()
        self.commands_by_kind = by_kind(self._before, now, self._own)
        self.commands = sum(self.commands_by_kind.values())
        self.cpu_seconds = _cpu(now) - _cpu(self._before)
        self.network_bytes = _network(now) - _network(self._before)

    def uncounted(self, *names: str) -> None:
        """Leave out these commands, which the caller has sent to measure."""
        self._own.update(names)

    def used_memory(self) -> int:
        return int(self.client.info("memory")["used_memory"])

    def close(self) -> None:
        self.client.close()

    def _info(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.info("everything")
        return answer


def by_kind(before: dict[str, Any], now: dict[str, Any], own: Counter[str]) -> dict[str, int]:
    """Count calls by command between two answers of INFO, without INFO and `own`, the most frequent first."""
    kinds = {}
    for name, stats in now.items():
        if not name.startswith("cmdstat_") or name == "cmdstat_info":
            continue
        kind = name.removeprefix("cmdstat_")
        earlier = before.get(name, {"calls": 0})
        calls = int(stats["calls"]) - int(earlier["calls"]) - own[kind]
        if calls > 0:
            kinds[kind] = calls
    return dict(sorted(kinds.items(), key=lambda pair: -pair[1]))


def _cpu(info: dict[str, Any]) -> float:
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


def _network(info: dict[str, Any]) -> int:
    """Bytes that came in and went out, without the headers of TCP."""
    return int(info["total_net_input_bytes"] + info["total_net_output_bytes"])


def table_bytes() -> dict[str, int]:
    """Return the size of each large table with its indexes, and of the two parts that a refresh reads."""
    tables = ("execution", "task", "execution_status_change")
    sizes = {name: int(_ask(f"SELECT pg_total_relation_size('{name}')")[0][0]) for name in tables}
    sizes["execution, rows alone"] = int(_ask("SELECT pg_relation_size('execution')")[0][0])
    sizes["task_rollup"] = int(_ask("SELECT pg_relation_size('task_rollup')")[0][0])
    return sizes


class SqlMeter:
    """Counts statements by pg_stat_statements, or transactions if that extension is not available. `counted` tells
    which of the two. `wal_bytes` is what the whole server wrote to its WAL meanwhile."""

    def __init__(self) -> None:
        self._view = statements_view()
        self.counted = "statements" if self._view else "transactions"
        self._own = 0
        self._before = 0
        self._wal_before = 0
        self.count = 0
        self.wal_bytes = 0

    def start(self) -> None:
        """Begin to count; the reading of the WAL comes before, so that it is not counted."""
        self._wal_before = _wal_position()
        self._before = self._now()

    def stop(self) -> None:
        """Call it when the measured processes have ended, because only then all their transactions are counted."""
        self.count = max(0, self._now() - self._before - self._own)
        self.wal_bytes = _wal_position() - self._wal_before

    def _now(self) -> int:
        """The count so far in this database, without the statements of this meter."""
        if self._view:
            query = (
                f"SELECT coalesce(sum(calls), 0) FROM {self._view} s JOIN pg_database d ON d.oid = s.dbid"  # noqa: S608 - a name from the catalogue
                " WHERE d.datname = current_database() AND s.query NOT LIKE '%%pg_stat%%'"
            )
        else:
            self._own = _flush_own_transactions()
            query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        return int(_ask(query)[0][0])


def _wal_position() -> int:
    """Return how many bytes of WAL the server has written so far."""
    return int(_ask("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0][0])


def statements_view() -> str | None:
    """Return the view with its schema. Create the extension in our schema if it is missing and that is allowed."""
    place = (
        "SELECT quote_ident(n.nspname) || '.pg_stat_statements' FROM pg_extension e"
        " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'"
    )
    try:
        if not _ask(place):
            _ask("CREATE EXTENSION pg_stat_statements")
        view = str(_ask(place)[0][0])
        _ask(f"SELECT 1 FROM {view} LIMIT 1")  # noqa: S608 - it may be installed and not loaded
    except DatabaseError:
        return None
    return view


def _flush_own_transactions() -> int:
    """Flush this session's transactions to the counter; return how many one reading adds to the next."""
    try:
        _ask("SELECT pg_stat_force_next_flush()")
    except DatabaseError:  # PostgreSQL 14 does not have this function
        return 1
    return 2


def _ask(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall() if cursor.description else []
