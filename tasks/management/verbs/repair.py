"""Repair what is wrong. The schedule does most of this by itself; the parts do it now."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer, Failed, bar_shown, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.jobs.reaper import reap, release_runs_without_node
from harbor_refresh.tasks.management.verbs import bulk
from harbor_refresh.tasks.management.verbs.marks import note_of_queue
from harbor_refresh.tasks.pipeline.reconciliation import Reconciled, reconcile
from harbor_refresh.tasks.pipeline.recovery import recover

MAX_DRIFTS = 20
#: What was done with jobs.
MEANINGS = {
    "reported": "their report was fired again",
    "failed": "nothing was heard of them for REFRESH_JOB_HOURS: Error",
    "released": "their worker is dead: they wait for another run",
    "sent": "their turn had come, or their message was overdue",
}


def _drift_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--full", action="store_true", help="check every execution, not only recently changed ones"
    )
    parser.add_argument("--dry-run", action="store_true", help="only print; mark nothing")


def repair_drift(*, full: bool, dry_run: bool) -> Answer:
    with bar_shown("looked at") as progress:
        outcome = reconcile(full=full, dry_run=dry_run, progress=progress)
    if outcome.held:
        raise Failed(
            f"another reconcile is running, so this one did nothing. Repeat it in a moment. "
            f"{outcome.held.holder} has the lease until {outcome.held.until.isoformat()}."
        )
    if outcome.lease_lost:
        raise Failed("this reconcile stood still for so long that another took over, so it ended early.")
    if not dry_run:
        note(at_terminal(), Word.RECONCILE, Kind.QUEUE, count=outcome.marked)
    told = ("rescan_reason", "looked_at", "drifted", "waiting", "marked", "released_from_quarantine")
    data = {
        "full": full,
        "dry_run": dry_run,
        **{name: getattr(outcome, name) for name in told},
        "first_drifts": [
            {
                "execution_id": one.execution_id,
                "vendor": one.vendor_type,
                "stored": one.stored,
                "true": one.true,
                "changed_at": one.changed_at,
            }
            for one in outcome.examples[:MAX_DRIFTS]
        ],
    }
    what = "execution" if full or outcome.rescan_reason or is_attached() else "changed task"
    done = "dry run: nothing marked" if dry_run else f"{outcome.marked:,} marked"
    summary = (
        f"Looked at {plural(outcome.looked_at, what)}: {outcome.drifted:,} drifted, "
        f"{outcome.waiting:,} of them waiting already, {done}, "
        f"{outcome.released_from_quarantine:,} released from quarantine."
    )
    return Answer(data, [summary, *_examples(outcome)])


def _examples(outcome: Reconciled) -> Iterator[Any]:
    if outcome.rescan_reason:
        yield f"The watermark could not be trusted: {outcome.rescan_reason}."
    rows = [
        (
            str(one.execution_id),
            one.vendor_type,
            one.stored,
            one.true if one.true != one.stored else f"{one.true}, with another end",
        )
        for one in outcome.examples[:MAX_DRIFTS]
    ]
    if rows:
        yield table(("execution", "vendor", "stored", "true"), rows)
    if outcome.drifted > MAX_DRIFTS:
        yield f"… and {outcome.drifted - MAX_DRIFTS:,} more."


def _claims(options: dict[str, Any]) -> Answer:
    count = recover()
    note_of_queue(Word.RECOVER, count)
    return Answer({"recovered": count}, [f"Recovered {plural(count, 'execution')}."])


def _jobs(options: dict[str, Any]) -> Answer:
    data = {**asdict(reap()), "released": release_runs_without_node(), "sent": sender.send_all()}
    rows = [(what, count, MEANINGS[what]) for what, count in data.items() if count]
    return Answer(data, [table(("", "jobs", ""), rows)] if rows else ["Nothing to settle."])


HELP = "mark executions with a wrong status, release the claims and jobs of dead nodes, refresh executions"
VERBS = {
    "drift": Subcommand(
        "find executions whose status differs from their tasks, and queue them for a refresh",
        lambda options: repair_drift(full=options["full"], dry_run=options["dry_run"]),
        _drift_arguments,
    ),
    "claims": Subcommand("release the claims of dead nodes", _claims),
    "jobs": Subcommand("release the jobs of dead workers, and send the jobs that may run", _jobs),
    "refresh": bulk.REFRESH,
}
