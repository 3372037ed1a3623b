"""The jobs on the page of an execution: the share done, `Stop` and `Try failed jobs again`."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from executions.admin.confirmation import confirmed_action, redirect_to_execution
from executions.admin.formatters import bar, duration
from executions.admin.search import parse_id
from executions.admin.unfold_api import ModelAdmin, display
from executions.errors import NoSuchExecution
from executions.models import Execution
from executions.progress import Progress, progress
from executions.status import Status, is_final
from tasks.admin.job_actions import MAX_CHOSEN, retry_now, stop_now
from tasks.admin.job_formatters import jobs_url
from tasks.jobs.overview.selection import executions_with_jobs

JOBS = ("Jobs", {"fields": ("done",)})


def progress_of(request: HttpRequest, object_id: Any) -> Progress | None:
    """Read the progress, once for a page; None if the execution has no jobs or does not exist."""
    execution_id = parse_id(str(object_id)) or 0
    known: dict[int, Progress | None] = request.__dict__.setdefault("progress_of_jobs", {})
    if execution_id not in known:
        try:
            has_jobs = bool(executions_with_jobs([execution_id]))
            known[execution_id] = progress(execution_id) if has_jobs else None
        except NoSuchExecution:
            known[execution_id] = None
    return known[execution_id]


class ExecutionJobsMixin(ModelAdmin):
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = list(super().get_fieldsets(request, obj))
        if obj is None or (found := progress_of(request, obj.pk)) is None:
            return shown
        obj.__dict__["progress"] = found
        return [shown[0], JOBS, *shown[1:]]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "done")

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leave out the actions that would do nothing."""
        found = progress_of(request, object_id)
        shown = {
            "stop": found is not None and not is_final(found.status),
            "retry": found is not None and bool(found.counts.get(Status.ERROR)),
        }
        return [one for one in super().get_actions_detail(request, object_id) if shown.get(one.path, True)]

    @admin.action(description="Stop", permissions=["refresh"])
    def stop_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> None:
        stop_now(request, list(queryset.values_list("pk", flat=True)[: MAX_CHOSEN + 1]))

    @admin.action(description="Try failed jobs again", permissions=["refresh"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Execution]) -> None:
        retry_now(request, list(queryset.values_list("pk", flat=True)[: MAX_CHOSEN + 1]))

    @confirmed_action(
        "Stop",
        "Waiting jobs do not begin any more, running jobs are asked to stop. The execution is Stopped at once.",
        icon="stop_circle",
        url_path="stop",
        submit="Stop",
    )
    def stop_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        stop_now(request, [int(object_id)])
        return redirect_to_execution(object_id)

    @confirmed_action(
        "Try failed jobs again",
        "Each failed job runs once more, and so do the jobs of its chain that were stopped because of it.",
        icon="replay",
        url_path="retry",
        submit="Try again",
    )
    def retry_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        retry_now(request, [int(object_id)])
        return redirect_to_execution(object_id)

    @display(description="Done")
    def done(self, execution: Execution) -> SafeString:
        found: Progress = execution.__dict__["progress"]
        left = f", about {duration(round(found.eta.total_seconds()))} left" if found.eta else ""
        return format_html(
            '<div class="flex flex-wrap items-center gap-4">{}<span>{}% of {}{}</span>'
            '<a href="{}" class="text-link">Its jobs</a></div>',
            bar(found.share),
            int(found.share * 100),
            f"{found.total:,}",
            left,
            jobs_url(execution.pk),
        )
