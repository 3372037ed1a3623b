"""`manage.py attach`: look whether this service can be attached to a Harbor, and put right what is wrong there."""

import os
from dataclasses import asdict
from typing import Any

from harbor_refresh.attach import dead_tasks
from harbor_refresh.attach.checks import AttachFacts
from harbor_refresh.attach.dead_tasks import VARIABLE
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.management.command import Subcommand, VerbCommand, argument
from harbor_refresh.executions.management.output import Answer, Failed, bar_shown
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.output import answer_of
from harbor_refresh.tasks.checks.registry import Shown, examine, selection
from harbor_refresh.tasks.management.verbs.repair import repair_drift


def _check(options: dict[str, Any]) -> Answer:
    with bar_shown("looked at") as progress:
        facts = AttachFacts(progress, str(options["job_service_redis"]))
        results = list(examine(selection(Shown.ATTACH), facts))
    found = facts.__dict__.get("dead")  # None: no check has looked
    return answer_of(results, more=dead_tasks.as_text(found) if found else (), dead_tasks=found and asdict(found))


def _repair(options: dict[str, Any]) -> Answer:
    if not is_attached():
        raise Failed(
            "REFRESH_ATTACH is not set, so no Harbor is attached; "
            "`manage.py harbor repair drift --full` repairs here."
        )
    dry_run = bool(options["dry_run"])
    if Facts().unapplied:
        raise Failed("our tables are missing. Type: manage.py migrate")
    if options["dead_tasks"]:
        return _end_dead_tasks(str(options["job_service_redis"]), dry_run)
    return repair_drift(full=True, dry_run=dry_run)


def _end_dead_tasks(url: str, dry_run: bool) -> Answer:
    if not url:
        raise Failed(f"name the Redis of Harbor's job service: --job-service-redis URL, or {VARIABLE}")
    with bar_shown("looked at") as progress:
        found = dead_tasks.end(url, progress, dry_run=dry_run)
    done = "dry run: nothing written" if dry_run else f"{found.ended:,} ended"
    return Answer(
        {"dry_run": dry_run, **asdict(found)}, [*dead_tasks.as_text(found), f"{found.dead:,} dead, {done}."]
    )


CHECK = "check whether this service can be attached to the Harbor that its settings name"
REPAIR = "mark all executions whose status is wrong, or end the tasks whose job is gone"
JOB_SERVICE = argument(
    "--job-service-redis",
    metavar="URL",
    default=os.environ.get(VARIABLE, ""),
    help=f"the Redis of Harbor's job service, which is only read (default: {VARIABLE})",
)
OF_REPAIR = (
    argument("--dry-run", action="store_true", help="print, and write nothing"),
    argument("--dead-tasks", action="store_true", help="end the tasks whose job is gone in Harbor's job service"),
    JOB_SERVICE,
)
VERBS = {
    "check": Subcommand(CHECK, _check, [JOB_SERVICE]),
    "repair": Subcommand(REPAIR, _repair, OF_REPAIR),
}


class Command(VerbCommand):
    help = "Check whether this service can be attached to a running Harbor, and correct wrong statuses there."
    requires_system_checks = ()  # some need tables that the first migration makes
    verbs = VERBS
