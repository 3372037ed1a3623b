"""The tunables of the refresh, as one typed value read from Django's settings."""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True)
class Refresh:
    interval: float
    key_prefix: str
    chunk: int
    fanout: int | None
    depth: int
    rest: float
    max_attempts: int
    heartbeat: float
    node_ttl: float
    stale: float
    pause: float
    quarantine: float
    reconcile_grace: float
    redis_url: str
    redis_timeout: float
    job_hours: float
    report_url: str
    report_authorization: str
    report_timeout: float
    strategy: str
    instance_id: int | None
    instance_total: int | None

    @property
    def in_process(self) -> bool:
        """Interval ≤ 0: refresh in the process that reports, at once, without Redis."""
        return self.interval <= 0

    @property
    def size(self) -> int:
        """How many executions a subtask has at most."""
        return self.fanout or self.chunk

    @property
    def share(self) -> int:
        """How many members one node may have in flight: what it works on and what waits for it."""
        return self.depth * self.size


def refresh_settings() -> Refresh:
    return Refresh(
        interval=settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS,
        key_prefix=settings.REFRESH_KEY_PREFIX,
        chunk=settings.REFRESH_CHUNK,
        fanout=settings.REFRESH_FANOUT,
        depth=settings.REFRESH_DEPTH,
        rest=settings.REFRESH_REST_SECONDS,
        max_attempts=settings.REFRESH_MAX_ATTEMPTS,
        heartbeat=settings.REFRESH_HEARTBEAT_SECONDS,
        node_ttl=settings.REFRESH_NODE_TTL_SECONDS,
        stale=settings.REFRESH_STALE_SECONDS,
        pause=settings.REFRESH_PAUSE_SECONDS,
        quarantine=settings.REFRESH_QUARANTINE_SECONDS,
        reconcile_grace=settings.REFRESH_RECONCILE_GRACE_SECONDS,
        job_hours=settings.REFRESH_JOB_HOURS,
        report_url=settings.REFRESH_REPORT_URL,
        report_authorization=settings.REFRESH_REPORT_AUTHORIZATION,
        report_timeout=settings.REFRESH_REPORT_TIMEOUT_SECONDS,
        redis_url=settings.REDIS_URL,
        redis_timeout=settings.REFRESH_REDIS_TIMEOUT_SECONDS,
        strategy=settings.REFRESH_STRATEGY,
        instance_id=settings.CORE_INSTANCE_ID,
        instance_total=settings.CORE_INSTANCE_TOTAL,
    )
