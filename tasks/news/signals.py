"""Signals of what happens in the pipeline and to jobs, and the log line of each. The modules of this app also send
two signals of harbor_refresh.executions.news.signals, whose head says what a signal is sent with.

Operators grep for these lines and docs/reference/log.md lists them, so their words do not change.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from logging import INFO, WARNING
from typing import Any

from harbor_refresh.executions.news.signals import MAX_IDS, MAX_LINES, database_down, logged, logged_by, refreshed
from harbor_refresh.tasks.queue.members import execution_id

__all__ = ["database_down", "refreshed"]

log = logging.getLogger("harbor_refresh")

claimed = logged(INFO, "Claimed %d executions for processing", "count")
recovered = logged(WARNING, "Recovered %d stale executions from crashed instances", "count")
marks_lost = logged(WARNING, "Could not mark %d executions, reconcile will find them: %s", "count", "error")
watermark_untrusted = logged(
    WARNING, "Reconcile cannot trust its watermark and looks at everything: %s", "rescan_reason"
)
#: Workers were silent for two looks.
workers_died = logged(WARNING, "Dead nodes, whose jobs are released: %s", "names")
lock_lost = logged(WARNING, "Lost the lock in the middle of a cycle: whoever has it now does the rest")
legacy_taken = logged(INFO, "Took %d of Harbor's own marks onto the queue", "count")
runs_released = logged(WARNING, "Recovered jobs: %d given back by dead processes", "count")
legacy_unread = logged(WARNING, "Could not look for Harbor's own marks, a later tick looks again: %s", "error")


@logged_by
def claim_expired(claim: Any, count: int, **_: Any) -> None:
    log.info(
        "%d of a claim of %s had been recovered meanwhile: left alone",
        count,
        claim.node,
        extra={"claim": claim.stamp, "execution_ids": [execution_id(one) for one in claim.members[:MAX_IDS]]},
    )


@logged_by
def discarded(members: Sequence[bytes], **_: Any) -> None:
    for raw in members[:MAX_LINES]:
        log.warning("Dropped a member that cannot be read: %r", raw[:120])
    if len(members) > MAX_LINES:
        log.warning("Dropped %d more members that cannot be read", len(members) - MAX_LINES)


@logged_by
def reconciled(outcome: Any, **_: Any) -> None:
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


@logged_by
def reaped(outcome: Any, **_: Any) -> None:
    if outcome.reported or outcome.failed:
        log.warning("Reaped jobs: %d reported again, %d failed for silence", outcome.reported, outcome.failed)


@logged_by
def bulk_refused(verb: str, reasons: Mapping[int, str], **_: Any) -> None:
    for pk, reason in list(reasons.items())[:MAX_LINES]:
        log.warning("Could not %s execution %d: %s", verb, pk, reason, extra={"execution_id": pk})
    if len(reasons) > MAX_LINES:
        log.warning("Could not %s %d more executions", verb, len(reasons) - MAX_LINES)


@logged_by
def queue_paused(queue: str, by: str, reason: str, **_: Any) -> None:
    log.warning("Queue %s is paused by %s: %s", queue, by or "?", reason or "no reason was given")


@logged_by
def queue_resumed(queue: str, by: str, lasted: timedelta, **_: Any) -> None:
    log.warning("Queue %s is resumed by %s, after %d s", queue, by or "?", lasted.total_seconds())
