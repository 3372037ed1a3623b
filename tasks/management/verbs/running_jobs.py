"""List the jobs of an execution that run now, and what each said last."""

from typing import Any

from django.utils import timezone

from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.queries import check_in_of, running_jobs
from harbor_refresh.tasks.jobs.running.handle import CheckIn
from harbor_refresh.tasks.models import Job

HELP = "list its running jobs instead, with the progress and the last message of each"

SHOWN = 50


def answer(options: dict[str, Any]) -> Answer:
    found = running_jobs(options["id"], SHOWN)
    data = {"running": [_as_data(one) for one in found]}
    if not found:
        return Answer(data, ["No job runs now."])
    rows = [
        (str(one["task_id"]), one["name"], _done(one), one["message"], f"{one['seconds_ago']:g} s ago")
        for one in data["running"]
    ]
    shown: list[Any] = [table(("task", "job", "done", "message", "last heard of"), rows)]
    if len(found) == SHOWN:
        shown.append(f"The first {plural(SHOWN, 'job')}; there may be more.")
    return Answer(data, shown)


def _as_data(job: Job) -> dict[str, Any]:
    said = check_in_of(job) or CheckIn()
    ago = (timezone.now() - job.heard_at).total_seconds() if job.heard_at else 0
    return {
        "task_id": job.task_id,
        "name": job.name,
        "message": said.message,
        "done": said.done,
        "of": said.of,
        "seconds_ago": round(max(0, ago), 1),
    }


def _done(one: dict[str, Any]) -> str:
    return "" if one["of"] is None else f"{one['done']:,} of {one['of']:,}"
