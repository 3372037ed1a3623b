"""List the jobs of an execution that run now, and what each said last."""

from typing import Any

from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.overview.running import InspectedJob, running_jobs

HELP = "list instead its jobs that run now, with how much each has done and what it said last"

SHOWN = 50


def answer(options: dict[str, Any]) -> Answer:
    found = running_jobs(options["id"], SHOWN)
    data = {"running": [_as_data(one) for one in found]}
    if not found:
        return Answer(data, ["No job runs now."])
    rows = [
        (str(one["task_id"]), one["name"], _done(one), one["message"], _ago(one["seconds_ago"]))
        for one in data["running"]
    ]
    shown: list[Any] = [table(("task", "job", "done", "message", "last heard of"), rows)]
    if len(found) == SHOWN:
        shown.append(f"The first {plural(SHOWN, 'job')}; there may be more.")
    return Answer(data, shown)


def _as_data(one: InspectedJob) -> dict[str, Any]:
    said = one.seen.check_in if one.seen else None
    return {
        "task_id": one.job.task_id,
        "name": one.job.name,
        "message": said.message if said else "",
        "done": said.done if said else None,
        "of": said.of if said else None,
        "seconds_ago": round(one.seen.ago, 1) if one.seen else None,
    }


def _done(one: dict[str, Any]) -> str:
    return "" if one["of"] is None else f"{one['done']:,} of {one['of']:,}"


def _ago(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:g} s ago"
