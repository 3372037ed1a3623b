"""What the queue looks like at this moment; cheap at any size."""

from typing import Any

from django.core.management.base import CommandParser

from executions.conf import refresh_settings
from executions.management.output import Answer, table
from executions.models import Quarantine
from executions.queue import execution_queue

HELP = "how many executions wait, are in flight, failed before, and who is alive"


def arguments(parser: CommandParser) -> None:
    pass


def answer(options: dict[str, Any]) -> Answer:
    stats = execution_queue().stats()
    quarantined = Quarantine.objects.count()
    data = {
        "backlog": stats.backlog,
        "in_flight": stats.in_flight,
        "failed_before": stats.failed_before,
        "quarantined": quarantined,
        "paused_ms": stats.pause_ms,
        "nodes": list(stats.nodes),
        "in_process": refresh_settings().in_process,
    }
    rows = [
        ("backlog", stats.backlog, "wait to be claimed"),
        ("in flight", stats.in_flight, "claimed and not finished"),
        ("failed before", stats.failed_before, "of these two, failed at least once"),
        ("quarantined", quarantined, "set aside: refresh_queue quarantine"),
        (
            "live nodes",
            len(stats.nodes),
            ", ".join(stats.nodes) or "no worker gives a sign of life",
        ),
    ]
    shown = [table(("", "count", ""), rows)]
    notes = []
    if stats.pause_ms:
        notes.append(f"Nobody claims for {stats.pause_ms} ms more: the database was away.")
    if refresh_settings().in_process:
        notes.append("The interval is 0 or less: whoever reports refreshes, the queue is not used.")
    return Answer(data, [*shown, *notes])
