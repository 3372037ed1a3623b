"""Repair what is wrong. The schedule does most of this by itself; the parts do it now."""

from dataclasses import asdict
from typing import Any

from harbor_refresh.executions.access.audit import Word
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.jobs.nodes import release_runs_without_node
from harbor_refresh.tasks.jobs.silent_jobs import reap
from harbor_refresh.tasks.management.verbs import bulk, drift
from harbor_refresh.tasks.management.verbs.marks import note_of_queue
from harbor_refresh.tasks.pipeline.recovery import recover


def _claims(options: dict[str, Any]) -> Answer:
    count = recover()
    note_of_queue(Word.RECOVER, count)
    return Answer({"recovered": count}, [f"Recovered {plural(count, 'execution')}."])


def _jobs(options: dict[str, Any]) -> Answer:
    outcome, released = reap(), release_runs_without_node()
    sent = sender.send_all()
    data = {**asdict(outcome), "released": released, "sent": sent}
    rows = [(what, count, MEANINGS[what]) for what, count in data.items() if count]
    return Answer(data, [table(("", "jobs", ""), rows)] if rows else ["Nothing to settle."])


#: What was done with jobs.
MEANINGS = {
    "reported": "their report was fired again",
    "failed": "nothing was heard of them for REFRESH_JOB_HOURS: Error",
    "released": "their worker is dead: they wait for another run",
    "sent": "their turn had come, or their message was overdue",
}
HELP = "mark executions with a wrong status, release the claims and jobs of dead nodes, refresh executions"
VERBS = {
    "drift": drift,
    "claims": Subcommand("release the claims of dead nodes", _claims),
    "jobs": Subcommand("release the jobs of dead workers, and send the jobs that may run", _jobs),
    "refresh": bulk.REFRESH,
}
