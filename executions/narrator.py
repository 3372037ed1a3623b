"""The one who tells: domain signals in, log lines out. Nothing else in the domain writes a log.

Operators grep for these lines; docs/operations.md lists them. Their words do not change.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from executions import signals

if TYPE_CHECKING:
    from executions.queue import Claim
    from executions.usecases.jobs import Reaped, Recovered
    from executions.usecases.reconciling import Reconciled
    from executions.usecases.refreshing import Refreshed
    from executions.usecases.reporting import Refusal

log = logging.getLogger("harbor_refresh")

SHOWN = 5


def on_claimed(count: int, **_: Any) -> None:
    log.info("Claimed %d executions for processing", count)


def on_refreshed(outcome: "Refreshed", **_: Any) -> None:
    log.info(
        "Refresh outdate execution status done, %d succeed, %d failed",
        outcome.succeeded,
        len(outcome.failed),
    )
    for execution_id, reason in list(outcome.failed.items())[:SHOWN]:
        log.warning("Execution %d could not be refreshed: %s", execution_id, reason)


def on_outlived(claim: "Claim", count: int, **_: Any) -> None:
    log.info("%d of a claim of %s had been recovered meanwhile: left alone", count, claim.node)


def on_recovered(count: int, **_: Any) -> None:
    log.warning("Recovered %d stale executions from crashed instances", count)


def on_discarded(members: Sequence[bytes], **_: Any) -> None:
    for raw in members[:SHOWN]:
        log.warning("Dropped a member that cannot be read: %r", raw[:120])
    if len(members) > SHOWN:
        log.warning("Dropped %d more members that cannot be read", len(members) - SHOWN)


def on_quarantined(execution_ids: Sequence[int], reason: str, **_: Any) -> None:
    for execution_id in execution_ids:
        log.error(
            "Quarantined execution %d: %s. Release it with: manage.py refresh_queue quarantine --release %d",
            execution_id,
            reason,
            execution_id,
        )


def on_paroled(execution_ids: Sequence[int], **_: Any) -> None:
    log.info("Released %d executions from quarantine for another try", len(execution_ids))


def on_marks_lost(count: int, error: str, **_: Any) -> None:
    log.warning("Could not mark %d executions, reconcile will find them: %s", count, error)


def on_database_away(count: int, error: str, **_: Any) -> None:
    log.warning("The database is away, %d executions wait for it: %s", count, error)


def on_refused(refusals: Sequence["Refusal"], **_: Any) -> None:
    for refusal in refusals[:SHOWN]:
        log.warning("Refused report %d of a batch: %s", refusal.position, refusal.reason)
    if len(refusals) > SHOWN:
        log.warning("Refused %d more reports of that batch", len(refusals) - SHOWN)


def on_reconciled(outcome: "Reconciled", **_: Any) -> None:
    if outcome.held:
        log.info(
            "Reconcile is running already, left alone: %s has the lease until %s",
            outcome.held.holder,
            outcome.held.until.isoformat(),
        )
    if outcome.overtaken:
        log.warning("Reconcile lost its lease to another pass and ended: it had stood still for too long")
    if outcome.postponed:
        log.info("Reconcile postponed: the queue is long, and its workers need the database")
    if outcome.marked:
        log.warning("Reconcile found %d drifted executions and marked them", outcome.marked)


def on_lease_taken_over(holder: str, until: datetime, **_: Any) -> None:
    log.warning(
        "Reconcile took over the lease of %s, which expired at %s: that pass died or stands still",
        holder,
        until.isoformat(),
    )


def on_watermark_doubted(doubt: str, **_: Any) -> None:
    log.warning("Reconcile cannot trust its watermark and looks at everything: %s", doubt)


def on_reaped(outcome: "Reaped", **_: Any) -> None:
    if not outcome:
        return
    log.warning(
        "Reaped jobs: %d reported again, %d forgotten, %d failed for silence, %d brought to what has landed, "
        "%d lost, %d to be sent again",
        outcome.reported,
        outcome.forgotten,
        outcome.failed,
        outcome.taken,
        outcome.lost,
        outcome.unsent,
    )


def on_jobs_recovered(outcome: "Recovered", **_: Any) -> None:
    if outcome:
        log.warning(
            "Recovered jobs: %d given back by dead nodes, %d reported again, %d sent",
            outcome.given_back,
            outcome.landed,
            outcome.sent,
        )


def on_troubled(error: str, **_: Any) -> None:
    log.warning("Some jobs could not be settled, the next pass tries again: %s", error)


def on_stops_lost(count: int, error: str, **_: Any) -> None:
    log.warning("Could not ask %d jobs to stop, recovery will: %s", count, error)


def on_lock_lost(**_: Any) -> None:
    log.warning("Lost the lock in the middle of a cycle: whoever has it now does the rest")


def begin() -> None:
    for name, tell in globals().items():
        if name.startswith("on_"):
            signal = getattr(signals, name.removeprefix("on_"))
            signal.connect(tell, dispatch_uid=f"narrator.{name}")
