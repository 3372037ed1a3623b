"""What Redis knows of the present, by one script."""

from typing import Any

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.queue import brief_queue
from harbor_refresh.tasks.queue.replies import Look
from harbor_refresh.tasks.strategies import strategy

#: A node that died before is not shown any more.
LATELY_SECONDS = 3_600
#: Designs that can count their marks only by reading all of them.
UNCOUNTABLE = ("scan", "lock")


def read() -> dict[str, Any]:
    """Return the values of State that Redis knows. Raises QueueUnavailable."""
    seen = brief_queue().look()
    ago = seen.ago
    return {
        "backlog": _backlog(seen),
        "in_flight": seen.in_flight,
        "failed_before": seen.failed_before,
        "oldest_waiting": ago(seen.waiting_since) if seen.waiting_since else (None if seen.backlog else 0.0),
        "pause": seen.pause_ms / 1000,
        "nodes": [(name, ago(heard)) for name, heard in seen.nodes],
        "dead": [(name, ago(heard)) for name, heard in seen.dead if ago(heard) <= LATELY_SECONDS],
        "last_heartbeat": ago(seen.heard) if seen.heard else None,
        "last_tick": ago(seen.ticked) if seen.ticked else None,
        "last_claim": ago(seen.stamp) if seen.stamp else None,
        "jobs_in_progress": seen.jobs,
    }


def _backlog(seen: Look) -> int | None:
    design = strategy()
    if not design.runs_cycles:
        return seen.backlog
    if design.name in UNCOUNTABLE:
        return None
    try:
        return design.backlog()
    except QueueUnavailable:
        return None
