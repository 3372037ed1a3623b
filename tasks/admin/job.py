"""The screen of jobs: of all executions, newest first, or of one execution."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import Truncator

from harbor_refresh.executions.admin.base import CappedChangeList, ReadOnlyAdmin
from harbor_refresh.executions.admin.formatters import (
    JOB_EXECUTION_PARAMETER,
    column,
    execution_link,
    status_label,
    task_url,
)
from harbor_refresh.executions.admin.page_parts import TASK_MEANINGS, legend_context
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.admin.job_filters import JobStatusFilter, NameFilter, is_narrow
from harbor_refresh.tasks.admin.job_formatters import attempt, waits_for
from harbor_refresh.tasks.models.job import Job

JOB_MEANINGS = TASK_MEANINGS | {
    Status.PENDING: "waits for a worker",
    Status.SCHEDULED: "will be tried again later",
    Status.STOPPED: "stopped, or an earlier job of its chain failed",
}


class TaskLinkChangeList(CappedChangeList):
    """Link each job to the page of its task, because a job has no page of its own."""

    def url_for_result(self, result: Any) -> str:
        return task_url(result.pk)


@page(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = (
        "number",
        "name",
        "execution_number",
        "shown_status",
        "attempt",
        "waits",
        "state",
        "short_message",
    )
    list_select_related = ("task",)
    large = ("args", "kwargs", "result", "task__extra_attrs")
    list_filter = (NameFilter, JobStatusFilter)
    lookups_of_links = (JOB_EXECUTION_PARAMETER,)
    list_head = "tasks/admin/job_list_head.html"
    changelist = TaskLinkChangeList
    search_fields = ("pk",)
    search_help_text = "Job id, task id or execution id"

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """In a narrowed list, show unfinished jobs first."""
        return ("task__status_code", "-pk") if is_narrow(request) else ("-pk",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), **legend_context(request, JOB_MEANINGS)}
        if found := parse_id(request.GET.get(JOB_EXECUTION_PARAMETER, "")):
            context |= {"execution_link": execution_link(found)}
        return super().changelist_view(request, context)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **options: Any) -> HttpResponse:
        if request.method != "GET" or (found := parse_id(object_id)) is None:
            return super().change_view(request, object_id, *args, **options)
        return HttpResponseRedirect(task_url(found))

    def matching(self, rows: QuerySet[Job], text: str) -> QuerySet[Job]:
        """Return the jobs for which every word is the id of the job, of its task or of its execution, which are
        indexed columns of the table of tasks, so three indexes answer together."""
        for word in text.split():
            pk = parse_id(word) or -1  # which no row has
            tasks = Task.objects.filter(Q(job_id=word) | Q(pk=pk) | Q(execution_id=pk))
            rows = rows.filter(pk__in=tasks.values("pk"))
        return rows

    attempt = column(attempt, "Attempt")
    waits = column(waits_for, "Waits for")
    number = column("task_id", "Task", int)
    execution_number = column("task.execution_id", "Execution", execution_link)
    shown_status = column("task.status", "Status", status_label)
    short_message = column("task.status_message", "Message", lambda text: Truncator(text).chars(80))
