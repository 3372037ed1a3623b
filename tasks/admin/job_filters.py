"""The filters of the jobs: by name and by status. In the list of one execution or of a search they filter all of
its jobs; in the list of all jobs they take bounded time."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.admin.filters import StatusFilter
from harbor_refresh.executions.admin.formatters import JOB_EXECUTION_PARAMETER
from harbor_refresh.executions.admin.search import add_bound
from harbor_refresh.executions.queries.listing import among
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.database import run
from harbor_refresh.tasks.models.job import Job

#: How many of the newest jobs are compared with a name.
NEWEST = 100_000
#: Of the newest jobs, how many tell the names that there are.
NAMED = 20_000
MAX_NAMES = 200
#: Of the tasks of a status, how many are looked at, and how many of their jobs are listed.
COMPARED, MOST = 30_000, 2_000


def is_narrow(request: HttpRequest) -> bool:
    return bool(JOB_EXECUTION_PARAMETER in request.GET or request.GET.get("q"))


def newest(jobs: QuerySet[Job], count: int) -> QuerySet[Job]:
    """Keep the newest jobs."""
    pks = Job.objects.order_by("-pk").values_list("pk", flat=True)
    return jobs.filter(pk__gt=next(iter(pks[count : count + 1]), 0))


class JobStatusFilter(StatusFilter):
    """The status is that of the task. An index finds the tasks of every status but Success."""

    def having(self, request: HttpRequest, queryset: QuerySet[Job], status: str) -> QuerySet[Job]:
        if is_narrow(request):
            return queryset.filter(task__status=status)
        if status == Status.SUCCESS:
            add_bound(request, f"Success: of the newest {COMPARED:,} jobs.")
            return newest(queryset, COMPARED).filter(task__status=status)
        rows = run("find_jobs_by_status", status=status, compared=COMPARED, most=MOST)
        if len(rows) == MOST:
            add_bound(request, f"{status}: {MOST:,} jobs of the newest executions.")
        return queryset.filter(among([pk for (pk,) in rows]))


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
