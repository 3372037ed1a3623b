"""The jobs on the screen of executions: which have jobs, where an execution is at this moment, its jobs that run
now, and the actions on it."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from harbor_refresh.executions.admin import execution_page
from harbor_refresh.executions.admin.bounds import add_bound
from harbor_refresh.executions.admin.confirmation import confirmed_action, redirect_to_execution
from harbor_refresh.executions.admin.formatters import NOTHING, is_quarantined, task_link
from harbor_refresh.executions.admin.page_parts import fragment
from harbor_refresh.executions.admin.search import among, parse_id
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.admin.unfold_api import ModelAdmin
from harbor_refresh.executions.errors import NoSuchExecution, QueueUnavailable
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries.progress import Progress
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.admin.job_actions import delete_now, ours, resume_now, retry_now, stop_now
from harbor_refresh.tasks.admin.job_formatters import check_in_bar, heard_at, jobs_url
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.overview.running import running_jobs
from harbor_refresh.tasks.jobs.overview.selection import executions_with_jobs
from harbor_refresh.tasks.pipeline.diagnosis import diagnose


def place_of(execution_id: int) -> dict[str, Any]:
    """Raises NoSuchExecution."""
    try:
        found = diagnose(execution_id)
    except QueueUnavailable as exc:
        return {"error": f"Redis is away, so this is unknown. {exc}"}
    claims = [
        {"node": token.node, "state": "waits for a worker" if token.is_waiting else "is being refreshed"}
        for token in (found.where.tokens if found.where else ())
    ]
    return {
        "is_queued": bool(found.where and found.where.is_queued),
        "claims": claims,
        "failures": found.where.failures if found.where else 0,
        "findings": found.findings,
    }


#: Of the newest executions, how many are looked at; of each, how many tasks; and how many executions are listed.
COMPARED, TASKS, MOST = 10_000, 5, 2_000


class HasJobsFilter(admin.SimpleListFilter):
    title = "jobs"
    parameter_name = "has_jobs"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Has jobs")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Execution]) -> QuerySet[Execution]:
        if self.value() != "yes":
            return queryset
        rows = run("find_executions_with_jobs", compared=COMPARED, tasks=TASKS, most=MOST)
        add_bound(request, f"With jobs: of the newest {COMPARED:,} executions, {MOST:,} at most.")
        return queryset.filter(among([pk for (pk,) in rows]))


#: So many running jobs are shown on the page of an execution.
MOST_RUNNING = 20


def running_table(execution_id: int) -> dict[str, Any]:
    try:
        found = running_jobs(execution_id, MOST_RUNNING)
    except QueueUnavailable as exc:
        return {"error": f"Redis is away, so this is unknown. {exc}"}
    rows = [
        [
            task_link(one.job.task_id),
            one.job.name,
            check_in_bar(one.seen, with_message=True) if one.seen else NOTHING,
            heard_at(one.seen) if one.seen else NOTHING,
        ]
        for one in found
    ]
    title = "Jobs that run now" if len(found) < MOST_RUNNING else f"Jobs that run now, the first {MOST_RUNNING}"
    return {"table": {"headers": ["Task", "Job", "Progress", "Last heard of"], "rows": rows}, "title": title}


def progress_of(request: HttpRequest, object_id: Any) -> Progress | None:
    """Read the progress, once for a page; None if the execution has no jobs or does not exist."""
    execution_id = parse_id(str(object_id)) or 0
    known: dict[int, Progress | None] = request.__dict__.setdefault("progress_of_jobs", {})
    if execution_id not in known:
        try:
            has_jobs = bool(executions_with_jobs([execution_id]))
            known[execution_id] = execution_page.progress_of(request, execution_id) if has_jobs else None
        except NoSuchExecution:
            known[execution_id] = None
    return known[execution_id]


class ExecutionJobsMixin(ModelAdmin):
    def get_urls(self) -> list[URLPattern]:
        place = path(
            "<path:object_id>/place/", fragment(self, self.place), name="harbor_executions_execution_place"
        )
        running = path(
            "<path:object_id>/running/", fragment(self, self.running), name="harbor_executions_execution_running"
        )
        return [place, running, *super().get_urls()]

    def get_list_filter(self, request: HttpRequest) -> Any:
        return (*super().get_list_filter(request), HasJobsFilter)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = dict(extra_context or {})
        if (execution_id := parse_id(object_id)) is not None and request.method == "GET":
            context["where_url"] = admin_url("harbor_executions_execution_place", execution_id)
            if progress_of(request, execution_id) is not None:
                context["its_jobs_url"] = jobs_url(execution_id)
                context["running_url"] = admin_url("harbor_executions_execution_running", execution_id)
        return super().change_view(request, object_id, form_url, context)

    def place(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Where it is: on the queue, claimed by a node, or in neither; and what ends that. It is loaded after the
        page, because it asks Redis, which may hang."""
        return render(request, "tasks/admin/execution_place.html", place_of(parse_id(object_id) or 0))

    def running(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Its jobs that run now, and what each said last. Loaded after the page, because it asks Redis."""
        return render(request, "tasks/admin/running_jobs.html", running_table(parse_id(object_id) or 0))

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leave out the actions that would do nothing. A quarantined execution is released, and not refreshed."""
        found = progress_of(request, object_id)
        row = self.get_object(request, str(object_id))
        has_ended, is_held = row is not None and is_final(row.status), row is not None and is_quarantined(row)
        shown = {
            "refresh": not is_held,
            "release": is_held,
            "stop": row is not None and not has_ended,
            "retry": found is not None and bool(found.counts.get(Status.ERROR)),
            "resume": found is not None and bool(found.counts.get(Status.STOPPED)),
            "remove": has_ended,
        }
        actions = ours(super().get_actions_detail(request, object_id))
        return [one for one in actions if shown.get(one.path, True)]

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

    @confirmed_action(
        "Resume stopped jobs",
        "Each job that was stopped runs once more. Jobs that were stopped because a job before them failed wait "
        "for a retry of that job.",
        icon="play_circle",
        url_path="resume",
        submit="Resume",
    )
    def resume_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        resume_now(request, [int(object_id)])
        return redirect_to_execution(object_id)

    @confirmed_action(
        "Delete",
        "Its tasks, jobs and history are deleted with it, for good.",
        icon="delete",
        url_path="remove",
        submit="Delete",
        permission="remove",
    )
    def delete_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        delete_now(request, [int(object_id)])
        if Execution.objects.filter(pk=object_id).exists():
            return redirect_to_execution(object_id)
        return HttpResponse(headers={"HX-Redirect": admin_url("harbor_executions_execution_changelist")})
