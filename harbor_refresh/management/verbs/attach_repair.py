"""Refresh every execution whose status or end is not what its tasks say, in pages by id. It may be stopped and run
again. Exits with 1 if an execution could not be refreshed."""

from typing import Any

from django.core.management.base import CommandParser

from executions.attachment import is_attached
from executions.audit import Kind, Word, at_terminal, note
from executions.management.looked_at import looked_at_shown
from executions.management.output import Answer, Failed, table
from executions.text import plural
from harbor_refresh.attach.output import examples, findings_data
from harbor_refresh.attach.repairs import Repaired, repair
from harbor_refresh.doctor.facts import Facts

HELP = "put right what is wrong"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="find and print, write nothing")


def answer(options: dict[str, Any]) -> Answer:
    if not is_attached():
        raise Failed(
            "REFRESH_ATTACH is not set, so no Harbor is attached; `manage.py reconcile --full` repairs here."
        )
    dry_run = bool(options["dry_run"])
    if not dry_run and Facts().unapplied:
        raise Failed("our tables are missing, and each repair writes its history there. Type: manage.py migrate")
    with looked_at_shown() as progress:
        outcome = repair(dry_run=dry_run, progress=progress)
    if not dry_run:
        note(at_terminal(), Word.REFRESH, Kind.EXECUTION, "wrong ones", count=outcome.repaired)
    return _answer(outcome, dry_run)


def _answer(outcome: Repaired, dry_run: bool) -> Answer:
    data = {
        "dry_run": dry_run,
        **findings_data(outcome),
        "repaired": outcome.repaired,
        "held": outcome.held,
        "failed": outcome.failures,
        "first_failed": {str(pk): reason for pk, reason in outcome.failed.items()},
    }
    done = "dry run: nothing written" if dry_run else f"{outcome.repaired:,} repaired"
    held = f", {outcome.held:,} left because another transaction holds them" if outcome.held else ""
    summary = f"Looked at {outcome.looked_at:,} executions: {outcome.wrong:,} wrong, {done}{held}."
    shown: list[Any] = [summary, *examples(outcome)]
    if outcome.failed:
        shown.append(
            table(
                ("execution", "why it could not be refreshed"),
                [(str(pk), reason) for pk, reason in outcome.failed.items()],
            )
        )
    failure = f"{plural(outcome.failures, 'execution')} could not be refreshed" if outcome.failures else ""
    return Answer(data, shown, failure)
