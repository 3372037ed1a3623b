"""Render a job: its attempt, the job it waits for, its arguments, and what Redis knows of it now."""

import json
from typing import Any
from urllib.parse import urlencode

from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.formatters import (
    JOB_EXECUTION_PARAMETER,
    NOTHING,
    label,
    number_bar,
    status_label,
    task_link,
)
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.durations import duration
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.jobs.overview.inspection import JobInspection
from harbor_refresh.tasks.jobs.records.attachments import contents_of
from harbor_refresh.tasks.jobs.records.check_in import CheckIn
from harbor_refresh.tasks.models.job import Job

#: JSON of at most so many characters is shown in one line.
LINE = 36
#: Longer JSON is folded.
SCREEN = 4_000


def attempt(job: Job) -> SafeString:
    """Show the number of the attempt that waits, runs or has ended, and how many there may be."""
    now = min(job.task.run_count - job.runs_before + 1, job.max_attempts)
    return format_html('<span class="whitespace-nowrap">{} of {}</span>', now, job.max_attempts)


def waits_for(job: Job) -> SafeString | str:
    """Show the job before it in its chain, until that has succeeded."""
    before = job.follows.task if job.follows else None
    if before is None or is_final(job.task.status) or before.status == Status.SUCCESS:
        return NOTHING
    return format_html(
        '<span class="inline-flex gap-2 items-center">{} {}</span>',
        task_link(before.pk),
        status_label(before.status),
    )


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


def folded(summary: str, text: str) -> SafeString:
    """Show a long text once a person opens it."""
    return format_html(
        '<details><summary class="cursor-pointer">{}</summary>'
        '<pre class="text-sm mt-2" style="white-space: pre-wrap; overflow-wrap: anywhere">{}</pre></details>',
        summary,
        text,
    )


def node_label(seen: JobInspection) -> SafeString | str:
    record = seen.record
    if not record.is_running:
        return f"No node: it is {record.status}"
    if seen.is_alive:
        return record.node
    silent = label("Silent", "danger", title="Its job is recovered within seconds")
    return format_html('<span class="inline-flex gap-2 items-center">{} {}</span>', record.node, silent)


def heard(seen: JobInspection) -> str:
    """Show when it last reported, and its message. A result for the next job of its chain is no message."""
    message = contents_of(seen.record).message
    return f"{heard_at(seen)}: {message}" if message else heard_at(seen)


def heard_at(seen: JobInspection) -> str:
    seconds = round(abs(seen.ago))
    return f"{duration(seconds)} ago" if seen.ago >= 0 else f"to run in {duration(seconds)}"


def check_in_bar(seen: JobInspection, *, with_message: bool = False) -> SafeString | str:
    """Show what the run said last, as a bar if it gave numbers."""
    said = seen.check_in or CheckIn()
    message = said.message if with_message else ""
    if said.done is None or said.of is None:
        return message or NOTHING
    return number_bar(said.done, said.of, message)


def jobs_url(execution_id: int) -> str:
    return f"{admin_url('harbor_tasks_job_changelist')}?{urlencode({JOB_EXECUTION_PARAMETER: execution_id})}"
