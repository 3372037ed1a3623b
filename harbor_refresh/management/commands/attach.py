"""`manage.py attach`: look whether this service can be attached to a Harbor; put wrong statuses right there."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.attach import checks, dead_tasks, rights  # noqa: F401  # checks register themselves
from harbor_refresh.attach.facts import AttachFacts
from harbor_refresh.attach.output import dead_text, examples, known
from harbor_refresh.attach.wrong_statuses import Findings, repair
from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.management.command import Subcommand, VerbCommand
from harbor_refresh.executions.management.output import Answer, Failed, bar_shown, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.examination import results as results_of
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.output import as_data, as_text
from harbor_refresh.tasks.checks.registry import Shown


def _check(options: dict[str, Any]) -> Answer:
    with bar_shown("looked at") as progress:
        facts = AttachFacts(progress, str(options["job_service_redis"]))
        results = list(results_of(Shown.ATTACH, facts))
    errors = [one for result in results for one in result.problems if one.is_serious()]
    *problems, summary = as_text(results)
    data, shown = known(facts)
    failure = plural(len(errors), "problem") if errors else ""
    return Answer({**as_data(results), **data}, [*problems, *shown, summary], failure)


def _arguments_of_repair(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="print, and write nothing")
    parser.add_argument(
        "--dead-tasks", action="store_true", help="end the tasks whose job is gone in Harbor's job service"
    )
    dead_tasks.add_job_service(parser)


def _repair(options: dict[str, Any]) -> Answer:
    if not is_attached():
        raise Failed(
            "REFRESH_ATTACH is not set, so no Harbor is attached; "
            "`manage.py harbor repair drift --full` repairs here."
        )
    dry_run = bool(options["dry_run"])
    if not dry_run and Facts().unapplied:
        raise Failed("our tables are missing, and each repair writes its history there. Type: manage.py migrate")
    if options["dead_tasks"]:
        return _end_dead_tasks(str(options["job_service_redis"]), dry_run)
    with bar_shown("looked at") as progress:
        outcome = repair(dry_run=dry_run, progress=progress)
    if not dry_run:
        note(at_terminal(), Word.REFRESH, Kind.EXECUTION, "wrong ones", count=outcome.repaired)
    return _repaired(outcome, dry_run)


def _end_dead_tasks(url: str, dry_run: bool) -> Answer:
    if not url:
        raise Failed(f"name the Redis of Harbor's job service: --job-service-redis URL, or {dead_tasks.VARIABLE}")
    with bar_shown("looked at") as progress:
        found = dead_tasks.end(url, progress, dry_run=dry_run)
    done = "dry run: nothing written" if dry_run else f"{found.ended:,} ended"
    return Answer({"dry_run": dry_run, **asdict(found)}, [*dead_text(found), f"{found.dead:,} dead, {done}."])


def _repaired(outcome: Findings, dry_run: bool) -> Answer:
    done = "dry run: nothing written" if dry_run else f"{outcome.repaired:,} repaired"
    held = f", {outcome.held:,} left because another transaction holds them" if outcome.held else ""
    summary = f"Looked at {outcome.looked_at:,} executions: {outcome.wrong:,} wrong, {done}{held}."
    shown: list[Any] = [summary, *examples(outcome)]
    failure = ""
    if outcome.failed:
        rows = [(str(pk), reason) for pk, reason in outcome.first_failed.items()]
        shown.append(table(("execution", "why it could not be refreshed"), rows))
        failure = f"{plural(outcome.failed, 'execution')} could not be refreshed"
    return Answer({"dry_run": dry_run, **asdict(outcome)}, shown, failure)


VERBS = {
    "check": Subcommand(
        "check whether this service can be attached to the Harbor that its settings name",
        _check,
        dead_tasks.add_job_service,
    ),
    "repair": Subcommand(
        "refresh the executions whose status is wrong, or end the tasks whose job is gone",
        _repair,
        _arguments_of_repair,
    ),
}


class Command(VerbCommand):
    help = "Check whether this service can be attached to a running Harbor, and correct wrong statuses there."
    requires_system_checks = ()  # some need tables that the first migration makes
    verbs = VERBS
