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
        "number",
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
        "integer",
        None,
        "only with `hash`: the number of this worker's instance; required if its host name does not end like `-3`",
        at_least=0,
        at_most=9999,
        takes="0 to 9,999, less than the total",
        shown="the ordinal of the host name",
    )
    instance_total: int | None = declared(
        "CORE_INSTANCE_TOTAL",
        "integer",
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
    fanout: int | None = declared(
        "REFRESH_FANOUT",
        "auto_or_integer",
        None,
        "executions in a subtask. `auto`: one while 16 or fewer wait; with more, the backlog is split into "
        "two subtasks for each live node, of 1,000 executions to a chunk each. A number also holds for a short "
        "backlog",
        at_least=1,
        at_most=6_000,
        takes="`auto`, or 1 to 6,000",
        shown="`auto`",
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
    job_hours: float = declared(
        "REFRESH_JOB_HOURS",
        "number",
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
    flower_url: str = declared(
        "REFRESH_FLOWER_URL",
        "http_url",
        "",
        "the address of Flower for people, for the links of the admin; unset: no links. Flower must have the host "
        "name of the admin to know its login",
        takes="an http or https address",
        of_service=True,
    )

    @property
    def in_process(self) -> bool:
        """Whether the reporting process refreshes at once, without Redis, because the interval is ≤ 0."""
        return self.interval <= 0


DECLARED = declarations(Refresh)


def refresh_settings() -> Refresh:
    """The settings of this process; those that are not set have their defaults."""
    return Refresh(redis_url=value(ADDRESS, "") or default_address(), **values(DECLARED))


def default_address() -> str:
    """The Redis that is the broker of the project; if its broker is no Redis, one on this machine."""
    broker = str(current_app.conf.broker_url or "")
    return broker if broker.startswith(("redis://", "rediss://")) else LOCAL
