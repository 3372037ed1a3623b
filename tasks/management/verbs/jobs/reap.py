"""Run a pass of the reaper now: compare the jobs in progress with the database, and settle what differs."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.overview.pass_counts import MEANINGS
from harbor_refresh.tasks.jobs.repair.reaper import reap
from harbor_refresh.tasks.jobs.runtime.broker import may_wait

HELP = "run a pass of the reaper now"


def arguments(parser: CommandParser) -> None:
    pass


def answer(options: dict[str, Any]) -> Answer:
    outcome = reap(may_wait)
    data = asdict(outcome)
    rows = [(what, count, MEANINGS["reaper"][what]) for what, count in data.items() if count]
    shown = [table(("", "jobs", ""), rows)] if outcome else ["Nothing to settle."]
    failure = ""
    if outcome.troubled:
        failure = f"the database refused {plural(outcome.troubled, 'page')}; the next pass tries again."
    return Answer(data, shown, failure)
