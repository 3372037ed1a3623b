"""The state of the service at this moment, from Redis, the broker and PostgreSQL.

A look is cheap at any size: one script and one pipeline in Redis, one statement in PostgreSQL, and no count over
executions or tasks. It waits for about a second if Redis hangs, and for two if PostgreSQL does. What cannot be
read is None, and `absent` says why.

Ages are in seconds, each by the clock of the server that knows the moment, so that no two clocks are compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harbor_refresh.executions.errors import NotMigrated, RefreshError
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.overview import of_broker, of_database, of_redis

#: A count stops here; it means "so many or more".
MOST = 10_000


@dataclass(frozen=True)
class Node:
    """A worker process, and how long it has been silent."""

    name: str
    silent: float


@dataclass(frozen=True)
class Scheduled:
    """A row of beat's schedule. `sent`: how long ago beat sent it; None if it never did."""

    name: str
    task: str
    is_enabled: bool
    interval: float | None
    sent: float | None


@dataclass(frozen=True, kw_only=True)
class State:
    """What is known. Each value is None if its server is away; `absent` has the reason by server, one of `redis`,
    `broker` and `database`. The database counts as away, too, if it `is_migrated` no further than another release.

    `nodes` are alive. `dead` fell silent within the last hour without saying that they stop, the latest first; a
    silent node may also have lost its way to Redis. While no heartbeat comes at all, none is known to be dead, and
    `last_heartbeat` says for how long. `oldest_waiting` is at least the age of the oldest execution on the queue.
    `last_tick`: how long ago a worker looked for work; `last_claim`: how long ago a worker claimed something.
    `last_reconcile`: how long ago the last complete pass of reconcile began; it found `drifted` executions whose
    mark was lost. `pause`: for how long no node claims yet, because the database was away. `paused`: the queues
    that an operator has paused. `messages`: how many wait with the broker, by queue. `beat_silent`: how long ago
    beat sent anything.
    """

    absent: Mapping[str, str] = field(default_factory=dict)
    is_migrated: bool = True
    strategy: str = "claim"
    in_process: bool = False
    # from Redis
    backlog: int | None = None
    in_flight: int | None = None
    failed_before: int | None = None
    oldest_waiting: float | None = None
    pause: float | None = None
    nodes: tuple[Node, ...] | None = None
    dead: tuple[Node, ...] | None = None
    last_heartbeat: float | None = None
    last_tick: float | None = None
    last_claim: float | None = None
    jobs_in_progress: int | None = None
    # from the broker
    messages: Mapping[str, int] | None = None
    # from PostgreSQL
    quarantined: int | None = None
    dead_letters: int | None = None
    open_actions: int | None = None
    last_reconcile: float | None = None
    drifted: int | None = None
    schedule: tuple[Scheduled, ...] | None = None
    paused: tuple[str, ...] | None = None

    @property
    def beat_silent(self) -> float | None:
        """How long ago beat sent anything; None if it never did, or if that is not known."""
        return min((row.sent for row in self.schedule or () if row.sent is not None), default=None)


def look() -> State:
    """Look at all servers. Raises nothing if one of them is away."""
    conf = refresh_settings()
    absent: dict[str, str] = {}
    known: dict[str, Any] = {}
    for server, read in _PARTS.items():
        if server == "broker" and "redis" in absent and of_broker.is_the_same_server():
            absent[server] = absent["redis"]
            continue
        try:
            known |= read()
        except RefreshError as exc:
            absent[server] = str(exc)
            known["is_migrated"] = not isinstance(exc, NotMigrated)
    return State(absent=absent, strategy=conf.strategy, in_process=conf.in_process, **known)


def _redis() -> dict[str, Any]:
    known = of_redis.read()
    for name in ("nodes", "dead"):
        known[name] = tuple(Node(*one) for one in known[name])
    return known


def _broker() -> dict[str, Any]:
    return {"messages": of_broker.messages()}


def _database() -> dict[str, Any]:
    known = of_database.read(MOST)
    if known["schedule"] is not None:
        known["schedule"] = tuple(Scheduled(*row) for row in known["schedule"])
    return known


_PARTS: Mapping[str, Callable[[], dict[str, Any]]] = {"redis": _redis, "broker": _broker, "database": _database}
