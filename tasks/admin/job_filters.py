"""The filters of the jobs: by name and by status.

No index answers them, so they filter the newest `NEWEST` jobs only. In the list of one execution or of a search
they filter all of its jobs.
"""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from executions.admin.formatters import JOB_EXECUTION_PARAMETER
from executions.admin.status_legend import STATUS_PARAMETER
from executions.status import Status
from tasks.models.job import Job

NEWEST = 100_000
MAX_NAMES = 200


def is_narrow(request: HttpRequest) -> bool:
    return bool(JOB_EXECUTION_PARAMETER in request.GET or request.GET.get("q"))


def newest(request: HttpRequest, jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Keep the newest jobs. The id where they begin is read once in a request."""
    known: dict[str, int] = request.__dict__
    if "before_the_newest" not in known:
        pks = Job.objects.order_by("-pk").values_list("pk", flat=True)
        known["before_the_newest"] = next(iter(pks[NEWEST : NEWEST + 1]), 0)
    return jobs.filter(pk__gt=known["before_the_newest"])


class NewestJobsFilter(admin.SimpleListFilter):
    lookup: str

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        value = self.value()
        if not value:
            return queryset
        if not is_narrow(request):
            queryset = newest(request, queryset)
        return queryset.filter(**{self.lookup: value})


class StatusFilter(NewestJobsFilter):
    title = "status"
    parameter_name = STATUS_PARAMETER
    lookup = "task__status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(Status.choices)


class NameFilter(NewestJobsFilter):
    title = "name"
    parameter_name = "name"
    lookup = "name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = newest(request, Job.objects.order_by()).values_list("name", flat=True).distinct()[:MAX_NAMES]
        return [(name, name) for name in sorted(names)]
