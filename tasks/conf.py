"""The settings of this app: the only place for the name, default, range and meaning of each.

A project need not set any of them; executions/declarations.py says where it may. The table in
docs/operations.md is compared with this one.
"""

from dataclasses import dataclass

from celery import current_app

from harbor_refresh.executions.declarations import declarations, declared, value, values

#: The one setting that has no range of its own: the address of the Redis of the queue.
ADDRESS = "REDIS_URL"
LOCAL = "redis://localhost:6379/0"
STRATEGIES = ("claim", "scan", "lock", "hash", "upstream")


@dataclass(frozen=True, kw_only=True)
class Refresh:
    """The settings as one value."""

    redis_url: str
    interval: float = declared(
        "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS",
        "seconds",
        30,
        "beat's tick, which covers lost wake-ups. 0 or less: no queue, the reporting process refreshes at once",
        at_least=-1,
    )
    strategy: str = declared(
        "REFRESH_STRATEGY",
        "one_of",
        "claim",
        "the [design](strategies.md) that keeps marks and refreshes them. It must be the same for all processes",
        choices=STRATEGIES,
        takes="one of five: `claim`, `scan`, `lock`, `hash` or `upstream`",
    )
    instance_id: int | None = declared(
        "CORE_INSTANCE_ID",
        "optional_integer",
        None,
        "only with `hash`: the number of this worker's instance; required if its host name does not end like `-3`",
        at_least=0,
        at_most=9999,
        takes="0 to 9,999, less than the total",
        shown="the ordinal of the host name",
    )
    instance_total: int | None = declared(
        "CORE_INSTANCE_TOTAL",
        "optional_integer",
        None,
        "only with `hash`: how many instances there are; required for workers",
        at_least=1,
        at_most=10_000,
    )
    key_prefix: str = declared(
        "REFRESH_KEY_PREFIX",
        "text",
        "cache:execution:refresh:",
        "the prefix of all keys; may be a hash tag, `{cache:execution:refresh:}`",
        takes="text",
    )
    scan_count: int = declared(
        "REFRESH_SCAN_COUNT",
        "integer",
        1000,
        "only with `scan` and `lock`: keys of the server that one SCAN looks at. Harbor's is 1,000 since June "
        "2023; before it was 10, the default of Redis",
        at_least=1,
        at_most=10_000,
    )
    legacy_rate: int = declared(
        "REFRESH_LEGACY_KEYS_PER_SECOND",
        "integer",
        10_000,
        "keys of the server that ticks look at in a second, of all processes together, to take "
        "[Harbor's own marks](migration.md#side-by-side) onto the queue. 0: none",
        at_least=0,
        at_most=1_000_000,
    )
    chunk: int = declared(
        "REFRESH_CHUNK",
        "integer",
        6000,
        "executions in a subtask at most, and in a claim",
        at_least=1,
        at_most=10_000,
    )
    fanout: int | None = declared(
        "REFRESH_FANOUT",
        "auto_or_integer",
        None,
        "executions in a subtask. `auto`: one while 16 or fewer wait; with more, the backlog is split into "
        "two subtasks for each live node, of 1,000 executions to a chunk each",
        at_least=1,
        at_most=10_000,
        takes="`auto`, or 1 to 10,000",
        shown="`auto`",
    )
    depth: int = declared(
        "REFRESH_DEPTH",
        "integer",
        3,
        "subtasks that a node may hold, including the running one",
        at_least=1,
        at_most=100,
    )
    rest: float = declared(
        "REFRESH_REST_SECONDS",
        "seconds",
        2,
        "the longest rest between two refreshes of an execution whose reports keep coming, while 16 or fewer "
        "wait. The first rest is 50 ms; each next rest is twice as long if the execution was marked five "
        "times more meanwhile, else half as long. 0: no rests",
        at_least=0,
        at_most=60,
    )
    max_attempts: int = declared(
        "REFRESH_MAX_ATTEMPTS",
        "integer",
        5,
        "failures in a row until quarantine. At 3 or less, neighbours of a member that kills its process may "
        "be quarantined with it",
        at_least=1,
        at_most=100,
    )
    heartbeat: float = declared(
        "REFRESH_HEARTBEAT_SECONDS",
        "seconds",
        2,
        "how often a node sends a heartbeat",
        at_least=0.05,
    )
    node_ttl: float = declared(
        "REFRESH_NODE_TTL_SECONDS",
        "seconds",
        10,
        "after how long a silent node counts as dead; at least three heartbeats",
        at_least=0.1,
    )
    stale: float = declared(
        "REFRESH_STALE_SECONDS",
        "seconds",
        300,
        "after how long a claim in progress is recovered even if its node is alive; more than the node's ttl."
        " A claim that waits for a process is recovered after the node's ttl, if no message waits with the "
        "broker",
        at_least=0.1,
    )
    pause: float = declared(
        "REFRESH_PAUSE_SECONDS",
        "seconds",
        2,
        "how long no node claims after the database was found away",
        at_least=0,
    )
    quarantine: float = declared(
        "REFRESH_QUARANTINE_SECONDS",
        "seconds",
        3600,
        "how long until a quarantined execution is tried again",
        at_least=1,
    )
    recover_interval: float = declared(
        "REFRESH_RECOVER_INTERVAL_SECONDS",
        "seconds",
        5,
        "how often claims of dead nodes are looked for",
        at_least=0.1,
    )
    reconcile_interval: float = declared(
        "REFRESH_RECONCILE_INTERVAL_SECONDS",
        "seconds",
        60,
        "how often drift is looked for",
        at_least=0.1,
    )
    reconcile_grace: float = declared(
        "REFRESH_RECONCILE_GRACE_SECONDS",
        "seconds",
        30,
        "how long the queue has for a change before reconcile looks at it",
        at_least=0,
    )
    reap_interval: float = declared(
        "REFRESH_REAP_INTERVAL_SECONDS",
        "seconds",
        3600,
        "how often jobs in progress are compared with their tasks",
        at_least=0.1,
    )
    sweep_interval: float = declared(
        "REFRESH_SWEEP_INTERVAL_SECONDS",
        "seconds",
        86_400,
        "how often old executions and other old rows are deleted",
        at_least=1,
    )
    sample_interval: float = declared(
        "REFRESH_SAMPLE_INTERVAL_SECONDS",
        "seconds",
        10,
        "how often the state of the service is written down for the charts of the dashboard",
        at_least=1,
    )
    reap_delay: float = declared(
        "REFRESH_REAP_DELAY_SECONDS",
        "seconds",
        300,
        "how long after the start of a worker the first comparison runs",
        at_least=0,
    )
    deliver_interval: float = declared(
        "REFRESH_DELIVER_INTERVAL_SECONDS",
        "seconds",
        30,
        "how often the deliverer of notifications is started, which covers lost wake-ups and timers of retries",
        at_least=0.1,
    )
    job_hours: float = declared(
        "REFRESH_JOB_HOURS",
        "seconds",
        24,
        "after so many hours of silence a job in progress fails",
        at_least=0.01,
    )
    result_bytes: int = declared(
        "REFRESH_RESULT_BYTES",
        "integer",
        65_536,
        "the most bytes of JSON of a [kept result](jobs.md#results-and-tracebacks). A larger one is not kept, and "
        "its job is Success",
        at_least=0,
        at_most=1_000_000,
    )
    report_url: str = declared(
        "REFRESH_REPORT_URL",
        "http_url",
        "",
        "where status changes of jobs are reported by HTTP, see [jobs](jobs.md#reports-over-http); unset: to "
        "the database",
        takes="an http or https address",
    )
    report_authorization: str = declared(
        "REFRESH_REPORT_AUTHORIZATION",
        "secret",
        "",
        "the `Authorization` header of those reports, in full",
        takes="a secret",
    )
    report_timeout: float = declared(
        "REFRESH_REPORT_TIMEOUT_SECONDS",
        "seconds",
        5,
        "how long one answer to a report may take",
        at_least=0.05,
        at_most=60,
        takes="from 0.05 to 60",
    )
    redis_timeout: float = declared(
        "REFRESH_REDIS_TIMEOUT_SECONDS",
        "seconds",
        2,
        "how long one answer of Redis may take",
        at_least=0.05,
    )
    flower_url: str = declared(
        "REFRESH_FLOWER_URL",
        "http_url",
        "",
        "the address of Flower for people, for the links of the admin; unset: no links. Flower must have the host "
        "name of the admin to know its login",
        takes="an http or https address",
    )
    visibility_timeout: float = declared(
        "REFRESH_VISIBILITY_TIMEOUT_SECONDS",
        "seconds",
        300,
        "after how long the broker delivers an unacknowledged message again",
        at_least=1,
    )

    @property
    def in_process(self) -> bool:
        """Whether the reporting process refreshes at once, without Redis, because the interval is ≤ 0."""
        return self.interval <= 0

    @property
    def size(self) -> int:
        """The most executions of a subtask."""
        return self.fanout or self.chunk

    @property
    def share(self) -> int:
        """The most members that one node may have in flight, including those of waiting subtasks."""
        return self.depth * self.size


DECLARED = declarations(Refresh)


def refresh_settings() -> Refresh:
    """The settings of this process; those that are not set have their defaults."""
    return Refresh(redis_url=value(ADDRESS, "") or default_address(), **values(DECLARED))


def default_address() -> str:
    """The Redis that is the broker of the project; if its broker is no Redis, one on this machine."""
    broker = str(current_app.conf.broker_url or "")
    return broker if broker.startswith(("redis://", "rediss://")) else LOCAL
