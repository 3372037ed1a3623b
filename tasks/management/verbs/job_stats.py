"""Count the jobs that have not ended, by where they are, and show the workers that run them."""

from dataclasses import asdict
from typing import Any

from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.queries import NodeLoad, overview

HELP = "count the jobs that have not ended, by where they are, and show the workers that run them"

SHOWN = 50
MEANINGS = {
    "waiting": "their turn has not come, or the broker holds enough",
    "in_chains": "of these, wait for the job before them",
    "later": "of these, wait for their time",
    "sent": "are with the broker, or were fetched by a worker",
    "running": "run",
    "unreported": "have a report that the target of the hook has not taken",
}


def answer(options: dict[str, Any]) -> Answer:
    counts, loads = overview()
    nodes = sorted(loads, key=lambda one: (-one.running, one.name))
    data = {**counts, "nodes": [asdict(one) | {"heard_at": one.heard_at.isoformat()} for one in nodes]}
    rows = [(what.replace("_", " "), count, MEANINGS[what]) for what, count in counts.items()]
    shown: list[Any] = [table(("", "jobs", ""), rows)]
    if nodes:
        shown += ["", table(("worker", "runs", "of", "queues"), [_row(one) for one in nodes[:SHOWN]])]
    if len(nodes) > SHOWN:
        shown.append(f"… and {plural(len(nodes) - SHOWN, 'worker')} more.")
    return Answer(data, shown)


def _row(one: NodeLoad) -> tuple[str, int, int, str]:
    name = f"{one.name} (silent)" if one.is_suspected else one.name
    return name, one.running, one.slots, ", ".join(one.queues)
