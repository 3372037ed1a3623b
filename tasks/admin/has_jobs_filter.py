"""The filter `has jobs` of the list of executions."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.admin.bounds import add_bound
from harbor_refresh.executions.admin.search import among
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.database import run

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
