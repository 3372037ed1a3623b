"""The screen of tasks, of all executions or of one, with the job of each; and the page of errors."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.text import Truncator

from harbor_refresh.executions.admin.base import asks_first
from harbor_refresh.executions.admin.execution_page import error_table
from harbor_refresh.executions.admin.filters import StatusFilter, add_bound
from harbor_refresh.executions.admin.formatters import (
    STATUS_PARAMETER,
    TASK_EXECUTION_PARAMETER,
    column,
    status_label,
)
from harbor_refresh.executions.admin.lists import LegendAdmin
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.news.audit import Target, Word, noted, person_of
from harbor_refresh.executions.queries.error_groups import by_hour, by_message, by_vendor, newest_errors
from harbor_refresh.executions.queries.listing import NEWEST, lowest_of_the_newest
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.admin.execution_actions import (
    errors_shown,
    may_run_again,
    may_unless_harbors,
    may_view_jobs,
)
from harbor_refresh.tasks.admin.job_formatters import JobFields, job_name, with_jobs
from harbor_refresh.tasks.jobs.again import run_job_again
from harbor_refresh.tasks.jobs.queries import check_in_of
from harbor_refresh.tasks.jobs.running.handle import JobCheckIn
from harbor_refresh.tasks.jobs.running.kept_ends import end_of
from harbor_refresh.tasks.jobs.stops import stop_job_of
from harbor_refresh.tasks.models.job import Job, JobState

#: The choices of the page of errors, and what each means in hours.
SINCE = {"hour": ("Last hour", 1), "day": ("Last day", 24), "week": ("Last week", 168), "": ("All", None)}


class TaskStatusFilter(StatusFilter):
    """The index task_by_status answers for all tasks, but for those that have succeeded: of these, the newest are
    compared, and so are all tasks of a running Harbor. Within one execution, the index task_rollup answers."""

    def having(self, request: HttpRequest, queryset: QuerySet[Task], status: str) -> QuerySet[Task]:
        has_index = status != Status.SUCCESS and not is_attached()
        if not has_index and TASK_EXECUTION_PARAMETER not in request.GET:
            add_bound(request, f"{status}: of the newest {NEWEST:,} tasks.")
            queryset = queryset.filter(pk__gte=lowest_of_the_newest(queryset, NEWEST))
        return queryset.filter(status=status)


@page(Task)
class TaskAdmin(JobFields, LegendAdmin):
    list_display = (
        *("id", "execution_number", "shown_status", "vendor_type", "its_work"),
        *("runs", "started", "duration", "short_message"),
    )
    list_filter = (TaskStatusFilter,)
    lookups_of_links = (TASK_EXECUTION_PARAMETER,)
    its_fields = (
        ("shown_status", "execution_number"),
        ("vendor_type", "job_id"),
        ("status_revision", "runs"),
        "status_message",
        "attributes",
    )
    its_times = (("created", "updated"), ("started", "ended"), "duration")
    fieldsets = ((None, {"fields": its_fields}), ("Times", {"fields": its_times}))
    large = ("extra_attrs",)
    search_fields = ("pk", "job_id__exact")
    search_help_text = "Task id or job id"
    form_head = "executions/admin/harbors_note.html"
    page_actions = ("stop", "retry")
    #: A task is a part of its execution, so acting on it takes the permission to act on executions.
    has_act_permission = may_unless_harbors("harbor_executions.change_execution")

    def get_urls(self) -> list[URLPattern]:
        errors = path("errors/", self.admin_site.admin_view(self.errors), name="harbor_executions_task_errors")
        return [errors, *super().get_urls()]

    def errors(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.GET.get("since", "day")
        hours = SINCE.get(chosen, SINCE["day"])[1]
        errors, bound = newest_errors(since=timezone.now() - timedelta(hours=hours) if hours else None)
        messages = by_message(errors)
        tables = [
            error_table("By message", "Message", messages),
            error_table("By vendor", "Vendor", by_vendor(errors)),
            error_table("By hour of their end", "Hour", by_hour(errors)),
        ]
        return self.own_page(
            request,
            "executions/admin/errors.html",
            "Errors",
            choices=[(f"?since={name}", title, name == chosen) for name, (title, _) in SINCE.items()],
            bound=bound,
            tables=tables if messages else [],
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        return with_jobs(super().get_queryset(request), shown=may_view_jobs(request))

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Within one execution, show unfinished tasks first, which is the order of the index task_rollup. By
        status, show those of the newest executions first, which is the order of the index task_by_status."""
        if TASK_EXECUTION_PARAMETER in request.GET:
            return ("status_code", "-pk")
        return ("-execution_id", "-pk") if request.GET.get(STATUS_PARAMETER) else ("-pk",)

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
        if obj and obj.child:
            return [(None, {"fields": ("its_work", *self.its_fields)}), *others]
        job = getattr(obj, "its_job", None)
        if job is None or not may_view_jobs(request):
            return [first, *others]
        now: list[Any] = [] if job.state == JobState.ENDED else ["why"]
        if job.state == JobState.RUNNING:
            has_numbers = (check_in_of(job) or JobCheckIn()).share is not None
            now = [*(["done"] if has_numbers else []), ("worker", "runs_so_far"), "heard"]
        end = ["traceback" if obj.its_end.traceback else "result"] if obj.its_end else []
        work = [("name", "attempt"), ("arguments", "named_arguments"), ("options", "published"), "needed"]
        of_job = {"At this moment": now, "Its end": end, "Job": work}
        return [first, *((title, {"fields": one}) for title, one in of_job.items() if one), *others]

    def useful(self, request: HttpRequest, row: Any) -> dict[str, bool]:
        is_over = row.its_job is not None and row.status in (Status.ERROR, Status.STOPPED)
        retry = is_over and may_run_again(request, row.execution)
        return {"stop": not is_final(row.status), "retry": retry}

    @asks_first(
        "Stop",
        "Stop {}",
        "The task becomes Stopped at once. If its job waits, the job does not begin; if its job runs, the job "
        "is asked to stop. Jobs after it in its chain are stopped as well.",
    )
    def stop(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        with errors_shown(request):
            task = queryset.get()
            with noted(person_of(request), Word.STOP, Target.TASK, task.pk) as entry:
                entry.skip = not stop_job_of(task.pk)
            if entry.skip:
                messages.warning(request, "It had ended before.")
            else:
                messages.success(request, "It is stopped.")

    @asks_first(
        "Run again",
        "Run {} again",
        "The job of this task runs once more, and so do the jobs of its chain that were stopped with it.",
    )
    def retry(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        with errors_shown(request):
            task = queryset.select_related("execution").get()
            if not may_run_again(request, task.execution):
                messages.error(request, "Nothing was done: you may not delete executions.")
                return
            with noted(person_of(request), Word.RETRY, Target.TASK, task.pk) as entry:
                entry.count = run_job_again(task.pk)
                entry.skip = not entry.count
            if entry.skip:
                messages.warning(request, "Nothing runs again: it has not ended, or it waits for another job.")
            else:
                jobs = "Its job" if entry.count == 1 else f"{entry.count:,} jobs of its chain"
                messages.success(request, f"{jobs} will run once more.")

    shown_status = column("status", "Status", status_label)
    runs = column(lambda task: task.run_count, "Run count")
    created = column("creation_time", "Created")
    started = column("start_time", "Started")
    short_message = column("status_message", "Message", lambda text: Truncator(text).chars(80))
    its_work = column(job_name, "Job")
