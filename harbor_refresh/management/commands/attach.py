"""`manage.py attach`: check a Harbor before this service is attached, and end the tasks whose job is gone."""

import os
from dataclasses import asdict
from typing import Any

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.management.command import Subcommand, VerbCommand, argument
from harbor_refresh.executions.management.output import Answer, Failed, bar_shown
from harbor_refresh.management.attach import dead_tasks, prerequisites  # noqa: F401  # the latter registers checks
from harbor_refresh.management.attach.dead_tasks import VARIABLE
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.output import answer_of
from harbor_refresh.tasks.checks.registry import Shown, examine, selection


def _check(options: dict[str, Any]) -> Answer:
    return answer_of(list(examine(selection(Shown.ATTACH), Facts())))


def _end_dead_tasks(options: dict[str, Any]) -> Answer:
    url, dry_run = str(options["job_service_redis"]), bool(options["dry_run"])
    if Facts().unapplied:
        raise Failed("our tables are missing. Type: manage.py migrate")
    if not url:
        raise Failed(f"name the Redis of Harbor's job service: --job-service-redis URL, or {VARIABLE}")
    with bar_shown("looked at") as progress:
        found = dead_tasks.end(url, progress, dry_run=dry_run)
    done = "dry run: nothing written" if dry_run else f"{found.ended:,} ended"
    return Answer(
        {"dry_run": dry_run, **asdict(found)}, [*dead_tasks.as_text(found), f"{found.dead:,} dead, {done}."]
    )


CHECK = "check whether this service can be attached to the Harbor that its settings name"
DEAD_TASKS = "end the tasks whose job is gone in Harbor's job service"
OF_DEAD_TASKS = (
    argument("--dry-run", action="store_true", help="print, and write nothing"),
    argument(
        "--job-service-redis",
        metavar="URL",
        default=os.environ.get(VARIABLE, ""),
        help=f"the Redis of Harbor's job service, which is only read (default: {VARIABLE})",
    ),
)
VERBS = {"check": Subcommand(CHECK, _check), "dead-tasks": Subcommand(DEAD_TASKS, _end_dead_tasks, OF_DEAD_TASKS)}


class Command(VerbCommand):
    help = "Check whether this service can be attached to a running Harbor, and end tasks there whose job is gone."
    requires_system_checks = ()  # some need tables that the first migration makes
    verbs = VERBS

    def answer(self, options: dict[str, Any]) -> Answer:
        if not is_attached():
            raise Failed(
                "REFRESH_ATTACH is not set, so no Harbor is attached. Set REFRESH_ATTACH=harbor for this command, "
                "and later for every process."
            )
        return super().answer(options)
