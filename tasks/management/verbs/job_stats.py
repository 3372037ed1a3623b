"""Count the jobs in progress, from the record of each, and show the totals of reaper and recovery."""

from collections.abc import Mapping
from typing import Any

from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.overview.inspection import Inspection, inspect
from harbor_refresh.tasks.jobs.overview.pass_counts import MEANINGS, Passes, counted

HELP = "count the jobs in progress and those that wait; show where they run, and what reaper and recovery did"

SHOWN = 50
STATUSES = {
    Status.PENDING: "wait to be run again",
    Status.SCHEDULED: "are to run later",
    Status.RUNNING: "run",
    Status.STOPPED: "were stopped, to be acknowledged",
    Status.ERROR: "failed, to be acknowledged",
    Status.SUCCESS: "done, to be acknowledged",
}


def answer(options: dict[str, Any]) -> Answer:
    seen, counts = inspect(), counted()
    nodes = seen.nodes.most_common()
    data = {
        "in_progress": {status: seen.statuses[status] for status in Status.values},
        "not_landed": seen.undelivered,
        "unreadable": seen.unreadable,
        "unsent": seen.unsent,
        "in_chains": seen.in_chains,
        "nodes": [{"node": node, "jobs": jobs, "alive": node in seen.live} for node, jobs in nodes],
        "counted_since": counts.since and counts.since.isoformat(),
        "reaper": _as_data(counts.reaper),
        "recovery": _as_data(counts.recovery),
    }
    shown: list[Any] = [table(("", "jobs", ""), _jobs(seen))]
    if nodes:
        rows = [(node if node in seen.live else f"{node} (silent)", jobs) for node, jobs in nodes[:SHOWN]]
        shown += ["", table(("node", "runs"), rows)]
    if len(nodes) > SHOWN:
        shown.append(f"… and {plural(len(nodes) - SHOWN, 'node')} more.")
    for kind, passes in (("reaper", counts.reaper), ("recovery", counts.recovery)):
        shown += ["", _headline(kind, passes), table(("", "in all", ""), _done(kind, passes.done))]
    if counts.since:
        shown += ["", f"Counted since {counts.since:%Y-%m-%d %H:%M:%S}."]
    return Answer(data, shown)


def _jobs(seen: Inspection) -> list[tuple[str, int, str]]:
    return [
        *((status.lower(), seen.statuses[status], meaning) for status, meaning in STATUSES.items()),
        ("not landed", seen.undelivered, "of these, their last status is not in the database yet"),
        ("unsent", seen.unsent, "recorded, and their message is still to be sent"),
        ("in chains", seen.in_chains, "wait for the job before them"),
        ("unreadable", seen.unreadable, "records that cannot be read; the reaper drops them"),
    ]


def _headline(kind: str, passes: Passes) -> str:
    last = f"the last ended {passes.last:%Y-%m-%d %H:%M:%S}" if passes.last else "none yet"
    return f"{kind}: {plural(passes.passes, 'pass', 'passes')}, {last}"


def _done(kind: str, done: Mapping[str, int]) -> list[tuple[str, int, str]]:
    return [(what.replace("_", " "), count, MEANINGS[kind][what]) for what, count in done.items()]


def _as_data(passes: Passes) -> dict[str, Any]:
    last = passes.last and passes.last.isoformat()
    return {"passes": passes.passes, "last": last, **passes.done}
