"""Write a log line for each signal of the pipeline and of jobs.

Operators grep for these lines and docs/reference/log.md lists them, so their words do not change.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Any

from harbor_refresh.executions.news.execution_log import MAX_IDS, MAX_LINES, connect_each, line
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.queue.members import execution_id

if TYPE_CHECKING:
    from harbor_refresh.tasks.jobs.silent_jobs import Reaped
    from harbor_refresh.tasks.pipeline.reconciliation import Reconciled
    from harbor_refresh.tasks.queue.claim import Claim

log = logging.getLogger("harbor_refresh")

on_claimed = line(INFO, "Claimed %d executions for processing", "count")
on_recovered = line(WARNING, "Recovered %d stale executions from crashed instances", "count")
on_keys_dropped = line(WARNING, "Dropped keys that another program has written: %s", "keys")
on_marks_lost = line(WARNING, "Could not mark %d executions, reconcile will find them: %s", "count", "error")
on_watermark_untrusted = line(
    WARNING, "Reconcile cannot trust its watermark and looks at everything: %s", "rescan_reason"
)
on_nodes_died = line(WARNING, "Nodes are dead, and their jobs are released: %s", "names")
on_lock_lost = line(WARNING, "Lost the lock in the middle of a cycle: whoever has it now does the rest")
on_legacy_taken = line(INFO, "Took %d of Harbor's own marks onto the queue", "count")
on_legacy_unread = line(
    WARNING, "Could not look for Harbor's own marks, the next look is in a minute: %s", "error"
)


def on_claim_expired(claim: "Claim", count: int, **_: Any) -> None:
    log.info(
        "%d of a claim of %s had been recovered meanwhile: left alone",
        count,
        claim.node,
        extra={"claim": claim.stamp, "execution_ids": [execution_id(one) for one in claim.members[:MAX_IDS]]},
    )


def on_discarded(members: Sequence[bytes], **_: Any) -> None:
    for raw in members[:MAX_LINES]:
        log.warning("Dropped a member that cannot be read: %r", raw[:120])
    if len(members) > MAX_LINES:
        log.warning("Dropped %d more members that cannot be read", len(members) - MAX_LINES)


def on_reconciled(outcome: "Reconciled", **_: Any) -> None:
    if outcome.held:
        log.info(
            "Reconcile is running already, left alone: %s has the lease until %s",
            outcome.held.holder,
            outcome.held.until.isoformat(),
        )
    if outcome.lease_lost:
        log.warning("Reconcile lost its lease to another pass and ended: it had stood still for too long")
    if outcome.postponed:
        log.info("Reconcile postponed: the queue is long, and its workers need the database")
    if outcome.marked:
        log.warning(
            "Reconcile found %d drifted executions and marked them",
            outcome.marked,
            extra={"execution_ids": [one.execution_id for one in outcome.examples]},
        )


def on_runs_released(count: int, **_: Any) -> None:
    if count:
        log.warning("Recovered jobs: %d given back by dead processes", count)


def on_reaped(outcome: "Reaped", **_: Any) -> None:
    if outcome.reported or outcome.failed:
        log.warning("Reaped jobs: %d reported again, %d failed for silence", outcome.reported, outcome.failed)


def on_bulk_refused(verb: str, reasons: Mapping[int, str], **_: Any) -> None:
    for pk, reason in list(reasons.items())[:MAX_LINES]:
        log.warning("Could not %s execution %d: %s", verb, pk, reason, extra={"execution_id": pk})
    if len(reasons) > MAX_LINES:
        log.warning("Could not %s %d more executions", verb, len(reasons) - MAX_LINES)


def on_queue_paused(queue: str, by: str, reason: str, **_: Any) -> None:
    log.warning("Queue %s is paused by %s: %s", queue, by or "?", reason or "no reason was given")


def on_queue_resumed(queue: str, by: str, lasted: timedelta, **_: Any) -> None:
    log.warning("Queue %s is resumed by %s, after %d s", queue, by or "?", lasted.total_seconds())


def connect() -> None:
    connect_each(globals().items(), vars(signals), __name__)
