"""The settings of this app: the only place for the name, default, range and meaning of each.

A project need not set any of them; executions/conf/declarations.py says where it may.
"""

from dataclasses import dataclass

from celery import current_app

from harbor_refresh.executions.conf.declarations import Declared, declarations, declared, value, values

#: The one setting that has no range of its own: the address of the Redis of the queue.
ADDRESS = "REDIS_URL"
_REDIS_URL = Declared(ADDRESS, "text", "", "")
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
        "The seconds between beat's ticks, which find work whose wake-up was lost. 0 or less: there is no queue, "
        "and the reporting process refreshes at once. If this is set, beat writes it to its row of the schedule.",
        at_least=-1,
    )
    strategy: str = declared(
        "REFRESH_STRATEGY",
        "one_of",
        "claim",
        "The [strategy](../explanation/strategies.md) of the refresh, which all processes must share. Strategies "
        "other than `claim` are for comparison.",
        choices=STRATEGIES,
    )
    instance_id: int | None = declared(
        "CORE_INSTANCE_ID",
        "integer",
        None,
        "Strategy `hash`: the number of this worker's instance, below `CORE_INSTANCE_TOTAL`. Unset: the number at "
        "the end of the host name, as in `worker-3`.",
        at_least=0,
        at_most=9999,
    )
    instance_total: int | None = declared(
        "CORE_INSTANCE_TOTAL",
        "integer",
        None,
        "Strategy `hash`: the number of instances. Workers of this strategy need it.",
        at_least=1,
        at_most=10_000,
    )
    key_prefix: str = declared(
        "REFRESH_KEY_PREFIX", "text", "cache:execution:refresh:", "The prefix of all [keys](keys.md)."
    )
    max_attempts: int = declared(
        "REFRESH_MAX_ATTEMPTS",
        "integer",
        5,
        "The number of failed refreshes in a row after which an execution is quarantined. At 3 or less, other "
        "executions of its chunk may be quarantined too.",
        at_least=1,
        at_most=100,
    )
    job_hours: float = declared(
        "REFRESH_JOB_HOURS",
        "number",
        24,
        "A running job that has not checked in for this many hours ends as Error.",
        at_least=0.01,
    )
    result_bytes: int = declared(
        "REFRESH_RESULT_BYTES",
        "integer",
        65_536,
        "The size limit of a kept [result](../howto/jobs.md), in bytes of JSON. A larger result is not kept; its "
        "job still succeeds.",
        at_least=0,
        at_most=1_000_000,
    )
    report_url: str = declared(
        "REFRESH_REPORT_URL",
        "http_url",
        "",
        "The address to which status changes of jobs are reported over HTTP. Unset: they are written to the "
        "database.",
    )
    report_authorization: str = declared(
        "REFRESH_REPORT_AUTHORIZATION", "secret", "", "The whole `Authorization` header of reports over HTTP."
    )
    flower_url: str = declared(
        "REFRESH_FLOWER_URL",
        "http_url",
        "",
        "The address of Flower, used for links in the admin. Flower accepts the admin's login if both have the "
        "same host name. Unset: no links.",
        of_service=True,
    )

    @property
    def in_process(self) -> bool:
        """Whether the reporting process refreshes at once, without Redis, because the interval is ≤ 0."""
        return self.interval <= 0


DECLARED = declarations(Refresh)


def refresh_settings() -> Refresh:
    """The settings of this process; those that are not set have their defaults."""
    return Refresh(redis_url=value(_REDIS_URL) or default_address(), **values(DECLARED))


def default_address() -> str:
    """The Redis that is the broker of the project; if its broker is no Redis, one on this machine."""
    broker = str(current_app.conf.broker_url or "")
    return broker if broker.startswith(("redis://", "rediss://")) else LOCAL
