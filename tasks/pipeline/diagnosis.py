"""Diagnosis: why the status of one execution is not what its tasks say, and what to do. Changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from harbor_refresh.executions.lifecycle.rollup import Comparison, compare
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.broker.celery_queues import TICKS
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.models.job import Node
from harbor_refresh.tasks.operations.pauses import is_refreshing_paused
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Stats, Whereabouts
from harbor_refresh.tasks.queue.members import Token, member
from harbor_refresh.tasks.strategies import strategy


@dataclass(frozen=True)
class Diagnosis:
    """`where` is None with an older design, which keeps its marks elsewhere."""

    comparison: Comparison
    where: Whereabouts | None
    findings: tuple[str, ...]


def diagnose(execution_id: int) -> Diagnosis:
    """Read what PostgreSQL and Redis know of this execution. Raises NoSuchExecution.

    The database is read again after Redis: a refresh that ended between the two would look like a lost mark.
    """
    row = compare(execution_id)
    if (design := strategy()).runs_cycles:
        older = f"The strategy is {design.name}: each cycle refreshes what is marked, unless refreshing is paused."
        return Diagnosis(row, None, (*_of_the_row(row), older))
    vendors = Task.objects.filter(execution=execution_id).values_list("vendor_type", flat=True)
    name = member(execution_id, next(iter(vendors[:1]), row.vendor_type))  # as Harbor names it in its marks
    where, stats = execution_queue().whereabouts(name), execution_queue().stats()
    row = compare(execution_id)
    return Diagnosis(row, where, (*_of_the_row(row), *_of_the_pipeline(row, where, stats)))


def _of_the_pipeline(row: Comparison, where: Whereabouts, stats: Stats) -> Iterator[str]:
    """Each sentence says what is the case and what ends it. The first is the likely cause."""
    if refresh_settings().in_process:
        yield (
            "The interval is 0 or less, so the process that reports refreshes at once, and the queue is not used. "
            "`reconcile` refreshes what it missed."
        )
        return
    yield from (_of_a_claim(token, stats) for token in where.tokens)
    if where.is_queued:
        yield _of_the_queue(stats)
    if where.failures:
        yield f"It failed {where.failures} of {refresh_settings().max_attempts} times; the log says why."
    if not (row.is_right or row.reason or where.tokens or where.is_queued):
        yield (
            "It is neither on the queue nor claimed, so its mark was lost. Reconcile finds it within a minute, if "
            f"beat runs. `harbor repair refresh {row.execution_id}` refreshes it now."
        )


def _of_the_row(row: Comparison) -> Iterator[str]:
    if row.true_status is None:
        yield "It has no tasks, so its status stays as it was set by hand."
    elif row.is_right:
        yield f"Its status is what its tasks say: see `harbor show {row.execution_id}`."
    if row.reason is not None:
        yield f"It is in quarantine since {row.quarantined_at:%Y-%m-%d %H:%M:%S %Z}: {row.attempts} failures."
        yield f"The reason: {row.reason}. `harbor quarantine --release {row.execution_id}` tries it again."
    if row.is_locked:
        yield "Another transaction has locked its row. It is refreshed after that ends: look at pg_locks."


def _of_a_claim(token: Token, stats: Stats) -> str:
    seconds = max(0, stats.now - token.stamp) / 1_000_000
    if token.is_waiting:  # its node may have stopped: any worker takes its message
        return f"It was claimed {seconds:,.0f} s ago and waits for a worker that is free."
    if token.node not in stats.nodes:
        return f"{token.node} claimed it {seconds:,.0f} s ago and is silent. Recovery releases it, if beat runs."
    return (
        f"{token.node} has refreshed it for {seconds:,.0f} s. Recovery releases a claim that is older than "
        f"{pacing.STALE_SECONDS:,.0f} s."
    )


def _of_the_queue(stats: Stats) -> str:
    if is_refreshing_paused():
        return "It waits on the queue, and refreshing is paused. `harbor unpause` lets the workers go on."
    if stats.pause_ms:
        return f"It is on the queue. No node claims for {stats.pause_ms} ms more, because the database was down."
    if not stats.nodes:
        return "It is on the queue, and no worker sends a heartbeat. Start a worker."
    if not Node.objects.filter(queues__contains=TICKS).exists():
        return f"It is on the queue, and no worker takes the queue {TICKS}. `harbor check` says which to start."
    seconds = stats.ago(max(stats.ticked, stats.since))
    if seconds > pacing.longest_silence(refresh_settings().interval):
        return (
            f"It is on the queue, and no worker has looked for work for {seconds:,.0f} s: no worker takes the "
            f"queue {TICKS}, or no beat runs. `harbor check` says which."
        )
    backlog = f"one of {stats.backlog:,}, with {stats.in_flight:,} in flight"
    return f"It is on the queue, {backlog}. The next ticks claim it."
