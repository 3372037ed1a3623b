"""Count the jobs that have not ended, by where they are, and show the workers that run them."""

from typing import Any

from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.queries import overview

HELP = "count the unfinished jobs by state, and show the workers that run them"

SHOWN = 50
MEANINGS = {
    "waiting": "their turn has not come, or the broker holds enough",
    "in_chains": "of these, wait for the job before them",
    "later": "of these, wait for their time",
    "limited": "of these, wait for their limit",
    "sent": "are with the broker, or were fetched by a worker",
    "running": "run",
    "unreported": "have a report that the target of the hook has not taken",
}


def answer(options: dict[str, Any]) -> Answer:
    counts, nodes = overview()
    nodes.sort(key=lambda one: -one["running"])
    rows = [(what.replace("_", " "), count, MEANINGS[what]) for what, count in counts.items()]
    shown: list[Any] = [table(("", "jobs", ""), rows)]
    if nodes:
        shown += ["", table(("worker", "runs", "of", "queues"), [_row(one) for one in nodes[:SHOWN]])]
    if len(nodes) > SHOWN:
        shown.append(f"… and {plural(len(nodes) - SHOWN, 'worker')} more.")
    return Answer({**counts, "nodes": nodes}, shown)


def _row(one: dict[str, Any]) -> tuple[str, int, int, str]:
    name = f"{one['name']} (silent)" if one["is_suspected"] else one["name"]
    return name, one["running"], one["slots"], ", ".join(one["queues"])
