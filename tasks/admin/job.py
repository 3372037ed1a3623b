"""The screen of jobs: of all executions, newest first, or of one execution.

In the list of one execution or of a search, the filters by name and by status filter all of its jobs; in the list
of all jobs they take bounded time.
"""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import Truncator

from harbor_refresh.executions.admin.base import NotedAdmin, never
from harbor_refresh.executions.admin.filters import StatusFilter, add_bound, parse_id
from harbor_refresh.executions.admin.formatters import (
    JOB_EXECUTION_PARAMETER,
    NOTHING,
    column,
    execution_link,
    status_label,
    task_url,
)
from harbor_refresh.executions.admin.lists import MAX_WORDS, LegendAdmin
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.database import among
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.news.audit import Target, Word, noted, person_of
from harbor_refresh.executions.queries.listing import lowest_of_the_newest
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.admin.job_formatters import attempt_of, waits_for
from harbor_refresh.tasks.jobs import limits
from harbor_refresh.tasks.models import Job, Limit

#: How many of the newest jobs are compared with a name.
NEWEST = 100_000
#: Of the newest jobs, how many tell the names that there are.
NAMED = 20_000
MAX_NAMES = 200
#: Of the tasks of a status, how many are looked at, and how many of their jobs are listed.
COMPARED, MOST = 30_000, 2_000


def is_narrow(request: HttpRequest) -> bool:
    return bool(JOB_EXECUTION_PARAMETER in request.GET or request.GET.get("q", "").strip())


def newest(jobs: QuerySet[Job], count: int) -> QuerySet[Job]:
    """Return those of these jobs that are among the newest `count` of all."""
    return jobs.filter(pk__gte=lowest_of_the_newest(Job.objects.all(), count))


class JobStatusFilter(StatusFilter):
    """The status is that of the task. An index finds the tasks of every status but Success."""

    def having(self, request: HttpRequest, queryset: QuerySet[Job], status: str) -> QuerySet[Job]:
        if is_narrow(request):
            return queryset.filter(task__status=status)
        if status == Status.SUCCESS:
            add_bound(request, f"Success: of the newest {COMPARED:,} jobs.")
            return newest(queryset, COMPARED).filter(task__status=status)
        # in the order of the index task_by_status, which leaves out Success
        newest_first = Task.objects.filter(status=status).order_by("-execution_id", "-pk")
        ids = list(newest_first.exclude(status=Status.SUCCESS).values_list("pk", flat=True)[:COMPARED])
        jobs = {*Job.objects.filter(among(ids)).values_list("pk", flat=True)}
        found = [pk for pk in ids if pk in jobs][:MOST]
        if len(found) == MOST:
            add_bound(request, f"{status}: {MOST:,} jobs of the newest executions.")
        return queryset.filter(among(found))


class NameFilter(admin.SimpleListFilter):
    title = "name"
    parameter_name = "name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = newest(Job.objects.order_by(), NAMED).values_list("name", flat=True).distinct()[:MAX_NAMES]
        return [(name, name) for name in sorted(names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        name = self.value()
        if not name:
            return queryset
        if is_narrow(request):
            return queryset.filter(name=name)
        add_bound(request, f"{name}: of the newest {NEWEST:,} jobs.")
        return newest(queryset, NEWEST).filter(name=name)


@page(Job)
class JobAdmin(LegendAdmin):
    list_display = (
        *("number", "name", "execution_number", "shown_status"),
        *("attempt", "waits", "state", "short_message"),
    )
    list_select_related = ("task",)
    large = ("args", "kwargs", "result", "task__extra_attrs")
    list_filter = (NameFilter, JobStatusFilter)
    lookups_of_links = (JOB_EXECUTION_PARAMETER,)
    meanings: ClassVar[dict[Status, str]] = LegendAdmin.meanings | {Status.SCHEDULED: "will be tried again later"}
    search_fields = ("pk",)
    search_help_text = "Job id, task id or execution id"

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("task__status_code", "-pk") if is_narrow(request) else ("-pk",)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **options: Any) -> HttpResponse:
        """Lead to the page of its task, because a job has no page of its own."""
        if request.method != "GET" or (found := parse_id(object_id)) is None:
            return super().change_view(request, object_id, *args, **options)
        return HttpResponseRedirect(task_url(found))

    def matching(self, rows: QuerySet[Job], text: str) -> QuerySet[Job]:
        """Return the jobs for which every word is the id of the job, of its task or of its execution, which are
        indexed columns of the table of tasks, so three indexes answer together."""
        for word in text.split()[:MAX_WORDS]:
            pk = parse_id(word) or -1  # which no row has
            tasks = Task.objects.filter(Q(job_id=word) | Q(pk=pk) | Q(execution_id=pk))
            rows = rows.filter(pk__in=tasks.values("pk"))
        return rows

    attempt = column(attempt_of, "Attempt")
    waits = column(waits_for, "Waits for")
    number = column("task_id", "Task", int)
    execution_number = column("task.execution_id", "Execution", execution_link)
    shown_status = column("task.status", "Status", status_label)
    short_message = column("task.status_message", "Message", lambda text: Truncator(text).chars(80))


def _in_words(concurrency: int | None, rate: str | None) -> str:
    words = [f"{concurrency:,} at once"] if concurrency is not None else []
    return ", ".join([*words, *([rate] if rate else [])]) or NOTHING


def _declared(row: Limit) -> str:
    rate = row.declared.get("rate")
    return _in_words(row.declared.get("concurrency"), rate and limits.rate_text(rate, row.declared["per"]))


@page(Limit)
class LimitAdmin(NotedAdmin):
    audit_kind = Target.LIMIT
    list_display = ("name", "counts", "declared_as", "changed_by")
    fields = ("name", "concurrency", ("rate", "per"), "declared_as", "changed_by")
    readonly_fields = ("name", "declared_as", "changed_by")
    ordering = ("name",)
    actions = ("reset",)

    counts = column(lambda row: _in_words(row.concurrency, limits.rate_text(row.rate, row.per)), "Counts")
    declared_as = column(_declared, "The code says")

    has_add_permission = has_delete_permission = never

    def save_model(self, request: HttpRequest, obj: Limit, form: Any, change: bool) -> None:
        values = {name: form.cleaned_data[name] for name in ("concurrency", "rate", "per")}
        limits.change(obj.pk, values, person_of(request).name)

    @admin.action(description="Reset to the declared limit", permissions=["change"])
    def reset(self, request: HttpRequest, queryset: QuerySet[Limit]) -> None:
        count = 0
        for one in queryset:
            with noted(person_of(request), Word.CHANGE, Target.LIMIT, one.pk) as entry:
                entry.skip = not limits.reset(one.pk)
                entry.detail = "reset to what the code says"
                count += not entry.skip
        messages.success(request, f"{plural(count, 'limit')} reset.")
