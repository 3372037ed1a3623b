"""The settings of this app: the only place for the name, default, range and meaning of each.

A project need not set any of them; executions/conf/declarations.py says where it may.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harbor_refresh.executions.conf.declarations import declarations, declared, values

#: In `retention_counts`: every vendor type that is not named.
OTHERS = "*"
#: Harbor's variable for the vendor type on the right has the name on the left in it.
HARBORS_NAMES = {"PURGE_AUDIT": "PURGE_AUDIT_LOG"}


@dataclass(frozen=True, kw_only=True)
class Intake:
    """The settings as one value."""

    attach: str = declared(
        "REFRESH_ATTACH",
        "one_of",
        "",
        "`harbor`: the database and Redis belong to a running Harbor, and its tables `execution` and `task` are "
        "refreshed in place ([attach](../howto/attach.md)). Set it for every process, before the first migration. "
        "Unset: the service has its own tables.",
        choices=("harbor",),
        of_service=True,
    )
    requests_per_minute: int = declared(
        "REFRESH_API_REQUESTS_PER_MINUTE",
        "integer",
        6000,
        "The requests that one API token may make in a minute to each web process. 0: no limit.",
        at_least=0,
        at_most=10_000_000,
        of_service=True,
    )
    metrics_networks: tuple[str, ...] = declared(
        "REFRESH_METRICS_NETWORKS",
        "networks",
        (),
        "The networks that may read `/metrics` without a token ([monitoring](../howto/monitor.md)). Only direct "
        "connections count; a request through a proxy needs a token. Unset: every request needs a token.",
        of_service=True,
    )
    public_url: str = declared(
        "REFRESH_PUBLIC_URL",
        "http_url",
        "",
        "The address at which people reach the admin, used for links in notifications. Unset: no links.",
    )
    deliver_networks: tuple[str, ...] = declared(
        "REFRESH_DELIVER_NETWORKS",
        "networks",
        (),
        "The only networks to which webhooks are sent. Unset: every public address.",
    )
    harbor_secret: str = declared(
        "REFRESH_HARBOR_SECRET",
        "secret",
        "",
        "The secret with which Harbor's job service reports to the [hook](../howto/job_service_hook.md), as "
        "`Authorization: Harbor-Secret …`. Production requires at least 16 characters. Unset: such reports are "
        "refused.",
        of_service=True,
    )
    retention_counts: Mapping[str, int] = declared(
        "VENDOR_EXECUTION_RETENTION_COUNT",
        "counts",
        {},
        "How many executions to keep for each vendor type and vendor id; `*` stands for every other vendor type. "
        "The [sweep](../howto/retention.md) deletes older executions that have ended. The service also reads "
        "Harbor's variables for one vendor type, such as `IMAGE_SCAN_EXECUTION_RETENTION_COUNT`.",
        at_least=1,
        at_most=1_000_000_000,
    )
    retention_days: int = declared(
        "REFRESH_RETENTION_DAYS",
        "integer",
        0,
        "The sweep deletes executions that ended more than this many days ago, with their tasks, jobs, results "
        "and history. 0: no limit by age. A project that sets neither this nor the counts keeps everything.",
        at_least=0,
        at_most=36_500,
    )
    history_days: int = declared(
        "REFRESH_HISTORY_DAYS",
        "integer",
        0,
        "For executions that are kept, the sweep deletes status changes older than this many days, except the "
        "newest 1,000 of each execution. 0: none.",
        at_least=0,
        at_most=36_500,
    )

    @property
    def kept(self) -> dict[str, int]:
        """How many executions to keep, by vendor type, and of `OTHERS`. All of a vendor type that is missing."""
        return {HARBORS_NAMES.get(vendor, vendor): number for vendor, number in self.retention_counts.items()}


DECLARED = declarations(Intake)


def intake_settings() -> Intake:
    return Intake(**values(DECLARED))
