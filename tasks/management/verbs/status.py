"""Show the state of the queue, which is cheap at any size; the claims in flight; or the jobs in progress."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.argument_types import positive_integer, seconds
from harbor_refresh.executions.management.output import Answer, printable, table
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.management.verbs import claims, job_stats
from harbor_refresh.tasks.management.verbs.queue_watch import watch
from harbor_refresh.tasks.operations.pauses import Paused, paused
from harbor_refresh.tasks.operations.queue_names import name_of
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.strategies import strategy

__all__ = ["HELP", "answer", "arguments", "watch"]

HELP = "count the executions that wait, are in flight or failed before; list the live nodes"


def arguments(parser: CommandParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--watch", action="store_true", help="show a live screen until Ctrl-C")
    which.add_argument("--claims", action="store_true", help=claims.HELP)
    which.add_argument("--jobs", action="store_true", help=job_stats.HELP)
    claims.arguments(parser)
    parser.add_argument(
        "--interval",
        type=seconds,
        default=1.0,
        metavar="SECONDS",
        help="with --watch: seconds between two updates (1)",
    )
    parser.add_argument("--times", type=positive_integer, metavar="N", help="with --watch: end after N updates")


def answer(options: dict[str, Any]) -> Answer:
    if options["claims"]:
        return claims.answer(options)
    if options["jobs"]:
        return job_stats.answer(options)
    stats, design = execution_queue().stats(), strategy()
    known = paused()
    quarantined = Quarantine.objects.count()
    backlog = stats.backlog if design.marks_on_queue else design.backlog()
    data = {
        "strategy": design.name,
        "backlog": backlog,
        "in_flight": stats.in_flight,
        "failed_before": stats.failed_before,
        "quarantined": quarantined,
        "paused_ms": stats.pause_ms,
        "nodes": list(stats.nodes),
        "paused": [
            {"queue": one.queue, "at": one.at.isoformat(), "by": one.by, "reason": one.reason}
            for one in known.values()
        ],
        "in_process": refresh_settings().in_process,
    }
    rows = [
        ("backlog", backlog, "wait to be claimed"),
        ("in flight", stats.in_flight, "claimed and not finished"),
        ("failed before", stats.failed_before, "of these two, failed at least once"),
        ("quarantined", quarantined, "set aside: harbor quarantine"),
        (
            "live nodes",
            len(stats.nodes),
            ", ".join(stats.nodes) or "no worker sends a heartbeat",
        ),
    ]
    shown = [table(("", "count", ""), rows)]
    notes: list[str] = []
    notes += [_of_a_pause(one) for one in known.values()]
    if stats.pause_ms:
        notes.append(f"No node claims for {stats.pause_ms} ms more, because the database was away.")
    if refresh_settings().in_process:
        notes.append("The interval is 0 or less: the reporting process refreshes, and the queue is not used.")
    if design.runs_cycles:
        notes.append(f"The strategy is {design.name}.")
    return Answer(data, [*shown, *notes])


def _of_a_pause(one: Paused) -> str:
    reason = f": {printable(one.reason)}" if one.reason else ""
    return (
        f"{name_of(one.queue)} is paused since {one.at:%Y-%m-%d %H:%M:%S %Z} by {printable(one.by)}{reason}. "
        f"`harbor unpause {one.queue}` ends it."
    )
