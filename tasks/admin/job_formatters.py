"""Render a job: its attempt, the job it waits for, its arguments, and what it does now."""

import json
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.formatters import JOB_EXECUTION_PARAMETER, NOTHING, status_label, task_link
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.durations import duration
from harbor_refresh.executions.status import is_final
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.queries import check_in_of
from harbor_refresh.tasks.jobs.running.handle import CheckIn
from harbor_refresh.tasks.models.job import Job, JobEnd, Node, State

#: JSON of at most so many characters is shown in one line.
LINE = 36
#: Of more needs, the first are shown.
MOST_NEEDS = 20
#: Longer JSON is folded.
SCREEN = 4_000


def attempt(job: Job) -> SafeString:
    """Show the number of the attempt that waits, runs or has ended, and how many there may be."""
    begun = job.run - job.runs_before
    now = max(1, begun + (job.state in (State.WAITING, State.SENT)))
    return format_html('<span class="whitespace-nowrap">{} of {}</span>', now, job.max_attempts)


def waits_for(job: Job) -> str:
    if not job.waits_for or is_final(job.task.status):
        return NOTHING
    return plural(job.waits_for, "job")


def needed(job: Job) -> SafeString | str:
    """Show the jobs that it needs, with their statuses. `need_count` is of the query that has read the job."""
    if not job.need_count:  # type: ignore[attr-defined]
        return NOTHING
    rows = job.needs.order_by("is_met", "place").values_list("needed_id", "needed__task__status")
    shown = format_html_join(
        " ",
        '<span class="inline-flex gap-2 items-center">{} {}</span>',
        ((task_link(pk), status_label(status)) for pk, status in rows[:MOST_NEEDS]),
    )
    more = job.need_count - MOST_NEEDS  # type: ignore[attr-defined]
    return format_html("{} and {} more", shown, f"{more:,}") if more > 0 else shown


def pretty(value: Any) -> SafeString | str:
    return pretty_result(value) if value else NOTHING


def pretty_result(value: Any) -> SafeString:
    """Show the value as JSON, also one that is empty."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > LINE:
        text = json.dumps(value, indent=2, ensure_ascii=False)
    if len(text) > SCREEN:
        return folded(f"Show {len(text):,} characters", text)
    return format_html('<pre class="text-sm" style="white-space: pre-wrap; word-break: break-all">{}</pre>', text)


def result(end: JobEnd) -> SafeString | str:
    return f"It was not kept: {end.why_not}." if end.why_not else pretty_result(end.result)


def folded(summary: str, text: str) -> SafeString:
    return format_html(
        '<details><summary class="cursor-pointer">{}</summary>'
        '<pre class="text-sm mt-2" style="white-space: pre-wrap; overflow-wrap: anywhere">{}</pre></details>',
        summary,
        text,
    )


def node_label(job: Job) -> str:
    name = Node.objects.filter(pk=job.node or 0).values_list("name", flat=True).first()
    return f"{name or 'a worker that is dead; the job is given to another one in seconds'}, process {job.process}"


def heard(job: Job) -> str:
    said = check_in_of(job)
    return f"{heard_at(job)}: {said.message}" if said and said.message else heard_at(job)


def heard_at(job: Job) -> str:
    seconds = (timezone.now() - job.heard_at).total_seconds() if job.heard_at else 0
    return f"{duration(round(max(0, seconds)))} ago"


def check_in_bar(job: Job, *, with_message: bool = False) -> SafeString | str:
    said = check_in_of(job) or CheckIn()
    message = said.message if with_message else ""
    if said.done is None or said.of is None:
        return message or NOTHING
    # a bar of 0 of 0 would have no end
    value, most = (said.done, said.of) if said.of else (1, 1)
    return format_html(
        '<div class="harbor-job-bar"><progress value="{}" max="{}" aria-label="Progress of the job">'
        '</progress> <span class="whitespace-nowrap">{} of {}</span>{}</div>',
        value,
        most,
        f"{said.done:,}",
        f"{said.of:,}",
        format_html("<div>{}</div>", message) if message else "",
    )


def jobs_url(execution_id: int) -> str:
    return f"{admin_url('harbor_tasks_job_changelist')}?{urlencode({JOB_EXECUTION_PARAMETER: execution_id})}"
