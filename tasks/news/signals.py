"""Signals of what happens in the pipeline and to jobs, and the log line of each. The modules of this app also send
three signals of harbor_refresh.executions.news.signals.

Operators grep for these lines and docs/reference/log.md lists them, so their words do not change.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from logging import INFO, WARNING
from typing import Any

from django.dispatch import Signal, receiver

from harbor_refresh.executions.news.signals import (
    MAX_IDS,
    MAX_LINES,
    database_away,
    logged,
    refreshed,
    refused,
)
from harbor_refresh.tasks.queue.members import execution_id

__all__ = ["database_away", "refreshed", "refused"]

log = logging.getLogger("harbor_refresh")

#: A batch was claimed and sent to the workers. With: count.
claimed = logged(INFO, "Claimed %d executions for processing", "count")
#: Claims of dead nodes, or old claims, were recovered. With: count.
recovered = logged(WARNING, "Recovered %d stale executions from crashed instances", "count")
#: Keys with our names and foreign contents were dropped. With: keys.
keys_dropped = logged(WARNING, "Dropped keys that another program has written: %s", "keys")
#: Redis was away when executions were to be marked. With: count, error.
marks_lost = logged(WARNING, "Could not mark %d executions, reconcile will find them: %s", "count", "error")
#: A reconcile pass looks at everything, because it cannot trust the watermark. With: rescan_reason.
watermark_untrusted = logged(
    WARNING, "Reconcile cannot trust its watermark and looks at everything: %s", "rescan_reason"
)
#: Workers were silent for two looks, and their jobs are released. With: names.
nodes_died = logged(WARNING, "Nodes are dead, and their jobs are released: %s", "names")
#: A cycle of the strategy lock lost its lock and ended.
lock_lost = logged(WARNING, "Lost the lock in the middle of a cycle: whoever has it now does the rest")
#: A tick took Harbor's own marks onto the queue. With: count.
legacy_taken = logged(INFO, "Took %d of Harbor's own marks onto the queue", "count")
#: A tick could not look for Harbor's own marks. With: error.
legacy_unread = logged(WARNING, "Could not look for Harbor's own marks, a later tick looks again: %s", "error")
#: A process finished a claim after it had been recovered. With: claim, count.
claim_expired = Signal()
#: A member that cannot be read was dropped. With: members.
discarded = Signal()
#: A reconcile pass has ended, was postponed or found another one running. With: outcome.
reconciled = Signal()
#: Runs of dead processes were released. With: count.
runs_released = Signal()
#: A pass over silent jobs has ended, whatever it found. With: outcome.
reaped = Signal()
#: The database refused a verb for these executions. With: verb, reasons, by their ids.
bulk_refused = Signal()
#: A person paused a queue of the broker. With: queue, by, reason.
queue_paused = Signal()
#: A person resumed it after lasted seconds. With: queue, by, lasted.
queue_resumed = Signal()


@receiver(claim_expired)
def on_claim_expired(claim: Any, count: int, **_: Any) -> None:
    log.info(
        "%d of a claim of %s had been recovered meanwhile: left alone",
        count,
        claim.node,
        extra={"claim": claim.stamp, "execution_ids": [execution_id(one) for one in claim.members[:MAX_IDS]]},
    )


@receiver(discarded)
def on_discarded(members: Sequence[bytes], **_: Any) -> None:
    for raw in members[:MAX_LINES]:
        log.warning("Dropped a member that cannot be read: %r", raw[:120])
    if len(members) > MAX_LINES:
        log.warning("Dropped %d more members that cannot be read", len(members) - MAX_LINES)


@receiver(reconciled)
def on_reconciled(outcome: Any, **_: Any) -> None:
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


@receiver(runs_released)
def on_runs_released(count: int, **_: Any) -> None:
    if count:
        log.warning("Recovered jobs: %d given back by dead processes", count)


@receiver(reaped)
def on_reaped(outcome: Any, **_: Any) -> None:
    if outcome.reported or outcome.failed:
        log.warning("Reaped jobs: %d reported again, %d failed for silence", outcome.reported, outcome.failed)


@receiver(bulk_refused)
def on_bulk_refused(verb: str, reasons: Mapping[int, str], **_: Any) -> None:
    for pk, reason in list(reasons.items())[:MAX_LINES]:
        log.warning("Could not %s execution %d: %s", verb, pk, reason, extra={"execution_id": pk})
    if len(reasons) > MAX_LINES:
        log.warning("Could not %s %d more executions", verb, len(reasons) - MAX_LINES)


@receiver(queue_paused)
def on_queue_paused(queue: str, by: str, reason: str, **_: Any) -> None:
    log.warning("Queue %s is paused by %s: %s", queue, by or "?", reason or "no reason was given")


@receiver(queue_resumed)
def on_queue_resumed(queue: str, by: str, lasted: timedelta, **_: Any) -> None:
    log.warning("Queue %s is resumed by %s, after %d s", queue, by or "?", lasted.total_seconds())
