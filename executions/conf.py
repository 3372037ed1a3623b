"""The settings of this app: the only place for the name, default, range and meaning of each.

A project need not set any of them; executions/declarations.py says where it may. The table in
docs/operations.md is compared with this one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harbor_refresh.executions.declarations import declarations, declared, values

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
        "`harbor`: the database and Redis are those of a running Harbor, and its tables `execution` and `task` "
        "are [refreshed](attach.md) where they are; unset: the tables are our own. It must be the same for all "
        "processes, from the first migration on",
        choices=("harbor",),
        takes="`harbor`",
        of_service=True,
    )
    requests_per_minute: int = declared(
        "REFRESH_API_REQUESTS_PER_MINUTE",
        "integer",
        6000,
        "requests that one API token may make in a minute. 0: any number",
        at_least=0,
        at_most=10_000_000,
        of_service=True,
    )
    metrics_networks: tuple[str, ...] = declared(
        "REFRESH_METRICS_NETWORKS",
        "networks",
        (),
        "the networks that may read [/metrics](monitoring.md#metrics) without a token, by the address of the "
        "connection, and not through a proxy; unset: none",
        takes="networks with commas between them, such as `10.1.0.0/16,192.0.2.7`",
        shown="none",
        of_service=True,
    )
    public_url: str = declared(
        "REFRESH_PUBLIC_URL",
        "http_url",
        "",
        "the address at which people reach this service, for the links in notifications; unset: no links",
        takes="an http or https address",
    )
    deliver_networks: tuple[str, ...] = declared(
        "REFRESH_DELIVER_NETWORKS",
        "networks",
        (),
        "the networks that webhooks may reach, and no others; unset: every public address",
        takes="networks with commas between them, such as `10.1.0.0/16,192.0.2.7`",
        shown="every public address",
    )
    harbor_secret: str = declared(
        "REFRESH_HARBOR_SECRET",
        "secret",
        "",
        "the secret with which Harbor's job service reports to the [hook](hook.md), as "
        "`Authorization: Harbor-Secret …`; unset: no secret is right. In production at least 16 characters, and "
        "none that everyone knows",
        takes="a secret",
        of_service=True,
    )
    signing_secrets: str = declared(
        "REFRESH_SIGNING_SECRETS",
        "signing_secrets",
        "",
        "the secrets with which reports may be [signed](hook.md#signed-reports); unset: signatures count for "
        "nothing",
        takes="one secret, or two with a comma between them, each `whsec_` and base64 of 24 to 64 bytes",
        of_service=True,
    )
    retention_counts: Mapping[str, int] = declared(
        "VENDOR_EXECUTION_RETENTION_COUNT",
        "counts",
        {},
        "how many of the newest executions to keep for each vendor type and vendor id; the [sweep](#sweep) "
        "deletes older ones that have ended. Executions without a vendor id have 0, so those of one "
        "vendor type count together. For one vendor type Harbor's variables do the same: "
        "`IMAGE_SCAN_EXECUTION_RETENTION_COUNT`",
        at_least=1,
        at_most=1_000_000_000,
        takes="`VENDOR:N` with commas between them, each N from 1; `*` is every vendor type that is not named",
        shown="a project keeps all; the service as many as Harbor: "
        "`IMAGE_SCAN:1,SBOM:1,SCAN_ALL:1,PURGE_AUDIT_LOG:10,EXECUTION_SWEEP:10,*:50`",
    )
    retention_days: int = declared(
        "REFRESH_RETENTION_DAYS",
        "integer",
        0,
        "the sweep deletes executions that ended more than so many days ago, whatever their number, with their "
        "tasks, jobs, results and history. 0: none for its age. A project that sets neither this nor the counts "
        "keeps everything, and its tables grow",
        at_least=0,
        at_most=36_500,
    )
    history_days: int = declared(
        "REFRESH_HISTORY_DAYS",
        "integer",
        0,
        "of an execution that stays, the sweep deletes status changes older than that, except for its newest "
        "1,000. 0: none",
        at_least=0,
        at_most=36_500,
        shown="a project: `0`; the service: `30`",
    )

    @property
    def kept(self) -> dict[str, int]:
        """How many executions to keep, by vendor type, and of `OTHERS`. All of a vendor type that is missing."""
        return {HARBORS_NAMES.get(vendor, vendor): number for vendor, number in self.retention_counts.items()}


DECLARED = declarations(Intake)


def intake_settings() -> Intake:
    return Intake(**values(DECLARED))
