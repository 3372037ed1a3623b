"""Repair what is wrong. The schedule does most of this by itself; the parts do it now."""

from dataclasses import asdict
from typing import Any

from harbor_refresh.executions.access.audit import Word
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.overview.pass_counts import MEANINGS
from harbor_refresh.tasks.jobs.records import own_database
from harbor_refresh.tasks.jobs.repair.reaper import reap
from harbor_refresh.tasks.jobs.runtime.broker import may_wait
from harbor_refresh.tasks.management.verbs import bulk, drift
from harbor_refresh.tasks.management.verbs.marks import note_of_queue
from harbor_refresh.tasks.pipeline.recovery import recover


def _claims(options: dict[str, Any]) -> Answer:
    count = recover()
    note_of_queue(Word.RECOVER, count)
    return Answer({"recovered": count}, [f"Recovered {plural(count, 'execution')}."])


def _jobs(options: dict[str, Any]) -> Answer:
    outcome = reap(may_wait)
    data = asdict(outcome)
    rows = [(what, count, MEANINGS["reaper"][what]) for what, count in data.items() if count]
    shown = [table(("", "jobs", ""), rows)] if outcome else ["Nothing to settle."]
    failure = ""
    if outcome.troubled:
        failure = f"the database refused {plural(outcome.troubled, 'page')}; the next pass tries again."
    return Answer(data, shown, failure)


def _new_name(options: dict[str, Any]) -> Answer:
    before, now = own_database.name(), own_database.renew()
    said = f"The name of this database was {before} and is {now}. Its jobs are sent again under the new name."
    return Answer({"before": before, "name": now}, [said])


HELP = "find and mark drift, release the claims of dead nodes, settle jobs, refresh executions"
VERBS = {
    "drift": drift,
    "claims": Subcommand("release the claims of dead nodes", _claims),
    "jobs": Subcommand("run a pass of the reaper now", _jobs),
    "refresh": bulk.REFRESH,
    "new-name": Subcommand(
        "give this database a new name in messages, because it is a copy (a base backup, a snapshot)", _new_name
    ),
}
