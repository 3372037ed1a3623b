"""Find executions whose status differs from their tasks, and mark them."""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.management.bar import bar_shown
from harbor_refresh.executions.management.output import Answer, Failed, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.pipeline.reconciliation import Drift, Reconciled, reconcile

MAX_DRIFTS = 20


HELP = "find executions whose status differs from their tasks, and queue them for a refresh"


def arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--full",
        action="store_true",
        help="check every execution, not only recently changed ones",
    )
    parser.add_argument("--dry-run", action="store_true", help="only print; mark nothing")


def answer(options: dict[str, Any]) -> Answer:
    with bar_shown("looked at") as progress:
        outcome = reconcile(full=options["full"], dry_run=options["dry_run"], progress=progress)
    if outcome.held:
        raise Failed(
            f"another reconcile is running, so this one did nothing. Repeat it in a moment. "
            f"{outcome.held.holder} has the lease until {outcome.held.until.isoformat()}."
        )
    if outcome.lease_lost:
        raise Failed("this reconcile stood still for so long that another took over, so it ended early.")
    if not options["dry_run"]:
        note(at_terminal(), Word.RECONCILE, Kind.QUEUE, count=outcome.marked)
    return _answer(outcome, options)


def _answer(outcome: Reconciled, options: dict[str, Any]) -> Answer:
    data = {
        "full": options["full"],
        "dry_run": options["dry_run"],
        "rescan_reason": outcome.rescan_reason,
        "looked_at": outcome.looked_at,
        "drifted": outcome.drifted,
        "waiting": outcome.waiting,
        "marked": outcome.marked,
        "released_from_quarantine": outcome.released_from_quarantine,
        "first_drifts": [_as_data(drift) for drift in outcome.examples[:MAX_DRIFTS]],
    }
    what = "execution" if options["full"] or outcome.rescan_reason or is_attached() else "changed task"
    done = "dry run: nothing marked" if options["dry_run"] else f"{outcome.marked:,} marked"
    summary = (
        f"Looked at {plural(outcome.looked_at, what)}: {outcome.drifted:,} drifted, "
        f"{outcome.waiting:,} of them waiting already, {done}, "
        f"{outcome.released_from_quarantine:,} released from quarantine."
    )
    why = [f"The watermark could not be trusted: {outcome.rescan_reason}."] if outcome.rescan_reason else []
    return Answer(data, [summary, *why, *_first(outcome.examples, outcome.drifted)])


def _as_data(drift: Drift) -> dict[str, Any]:
    return {
        "execution_id": drift.execution_id,
        "vendor": drift.vendor_type,
        "stored": drift.stored,
        "true": drift.true,
        "changed_at": drift.changed_at and drift.changed_at.isoformat(),
    }


def _first(drifts: Sequence[Drift], count: int) -> list[Any]:
    if not drifts:
        return []
    rows = [
        (
            str(one.execution_id),
            one.vendor_type,
            one.stored,
            one.true if one.true != one.stored else f"{one.true}, with another end",
        )
        for one in drifts[:MAX_DRIFTS]
    ]
    shown: list[Any] = [table(("execution", "vendor", "stored", "true"), rows)]
    if count > MAX_DRIFTS:
        shown.append(f"… and {count - MAX_DRIFTS:,} more.")
    return shown
