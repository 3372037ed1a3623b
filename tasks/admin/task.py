"""The screen of tasks with the job of a task: its work, what it does at this moment, and the actions."""

import json
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from harbor_refresh.executions.access.audit import Kind, Word, noted, person_of
from harbor_refresh.executions.admin.base import may
from harbor_refresh.executions.admin.confirmation import Question, asks_first
from harbor_refresh.executions.admin.formatters import (
    NOTHING,
    column,
    status_label,
    task_link,
)
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.task import TaskAdmin
from harbor_refresh.executions.durations import duration
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.admin.execution_actions import errors_shown, harbors, may_run_again
from harbor_refresh.tasks.jobs.again import run_job_again
from harbor_refresh.tasks.jobs.queries import check_in_of, why
from harbor_refresh.tasks.jobs.running.handle import CheckIn
from harbor_refresh.tasks.jobs.running.kept_ends import end_of
from harbor_refresh.tasks.jobs.stops import stop_job_of
from harbor_refresh.tasks.models.job import Job, JobEnd, Node, State

#: JSON of at most so many characters is shown in one line.
LINE = 36
#: Of more needs, the first are shown.
MOST_NEEDS = 20
#: Longer JSON is folded.
SCREEN = 4_000


def attempt_of(job: Job) -> SafeString:
    """Show the number of the attempt that waits, runs or has ended, and how many there may be."""
    begun = job.run - job.runs_before
    now = max(1, begun + (job.state in (State.WAITING, State.SENT)))
    return format_html('<span class="whitespace-nowrap">{} of {}</span>', now, job.max_attempts)


def waits_for(job: Job) -> str:
    if not job.waits_for or is_final(job.task.status):
        return NOTHING
    return plural(job.waits_for, "job")


def needed_jobs(job: Job) -> SafeString | str:
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


def job_result(end: JobEnd) -> SafeString | str:
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


def last_heard(job: Job) -> str:
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


@page(Task)
class TaskWithJobAdmin(TaskAdmin):
    page_actions = ("stop", "retry")
    #: A task is a part of its execution, so acting on it takes the permission to act on executions.
    has_act_permission = may("harbor_executions.change_execution")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Read with the task its job, and what is kept of the end of that."""
        task = super().get_object(request, object_id, from_field)
        if task is not None:
            jobs = Job.objects.select_related("task").annotate(need_count=Count("needs"))
            task.its_job = jobs.filter(pk=task.pk).first()
            task.its_end = end_of(task.pk) if task.its_job and is_final(task.status) else None
        return task

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        first, *others = super().get_fieldsets(request, obj)
        job = getattr(obj, "its_job", None)
        if job is None:
            return [first, *others]
        now: list[Any] = [] if job.state == State.ENDED else ["why"]
        if job.state == State.RUNNING:
            has_numbers = (check_in_of(job) or CheckIn()).share is not None
            now = [*(["done"] if has_numbers else []), ("node", "runs_so_far"), "heard"]
        end = ["traceback" if obj.its_end.traceback else "result"] if obj.its_end else []
        work = [("name", "attempt"), ("arguments", "named_arguments"), ("options", "published"), "needed"]
        of_job = {"At this moment": now, "Its end": end, "Job": work}
        return [first, *((title, {"fields": one}) for title, one in of_job.items() if one), *others]

    def useful(self, request: HttpRequest, row: Any) -> dict[str, bool]:
        is_over = row.its_job is not None and row.status in (Status.ERROR, Status.STOPPED)
        retry = is_over and may_run_again(request, row.execution)
        return {"stop": not is_final(row.status), "retry": retry} | harbors()

    @admin.action(description="Stop", permissions=["act"])
    @asks_first(
        Question(
            "Stop {}",
            "The task becomes Stopped at once. If its job waits, the job does not begin; if its job runs, the job "
            "is asked to stop. Jobs after it in its chain are stopped as well.",
        )
    )
    def stop(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        with errors_shown(request):
            task = queryset.get()
            with noted(person_of(request), Word.STOP, Kind.TASK, task.pk) as entry:
                entry.skip = not stop_job_of(task.pk)
            if entry.skip:
                messages.warning(request, "It had ended before.")
            else:
                messages.success(request, "It is stopped.")

    @admin.action(description="Run again", permissions=["act"])
    @asks_first(
        Question(
            "Run {} again",
            "The job of this task runs once more, and so do the jobs of its chain that were stopped with it.",
        )
    )
    def retry(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        with errors_shown(request):
            task = queryset.select_related("execution").get()
            if not may_run_again(request, task.execution):
                messages.error(request, "Nothing was done: you may not delete executions.")
                return
            with noted(person_of(request), Word.RETRY, Kind.TASK, task.pk) as entry:
                entry.count = run_job_again(task.pk)
                entry.skip = not entry.count
            if entry.skip:
                messages.warning(request, "Nothing runs again: it has not ended, or it waits for another job.")
            else:
                jobs = "Its job" if entry.count == 1 else f"{entry.count:,} jobs of its chain"
                messages.success(request, f"{jobs} will run once more.")

    name = column("its_job.name", "Name", str)
    attempt = column("its_job", "Attempt", attempt_of)
    arguments = column("its_job.args", "Arguments", pretty)
    named_arguments = column("its_job.kwargs", "Named arguments", pretty)
    options = column("its_job.options", "Options", pretty)
    published = column("its_job.sent_at", "Message sent")
    needed = column("its_job", "Needs", needed_jobs)
    node = column("its_job", "Runs on", node_label)
    runs_so_far = column("its_job.run", "Runs so far", int)
    heard = column("its_job", "Last heard of", last_heard)
    why = column("its_job", "Why it does not run", why)
    done = column("its_job", "Done", check_in_bar)
    result = column("its_end", "Result", job_result)
    traceback = column("its_end.traceback", "Traceback", partial(folded, "Show the traceback"))
