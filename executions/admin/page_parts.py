"""Parts of the admin's pages.

1. Lists of rows with a status, with a legend: the meaning of each status. A click on it filters the list.
2. The tasks of the executions of one page, counted by status in one statement for all of them.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, ClassVar

from django.db.models import Count
from django.http import HttpRequest, HttpResponse

from harbor_refresh.executions.admin.base import CappedChangeList, ReadOnlyAdmin
from harbor_refresh.executions.admin.formatters import STATUS_PARAMETER, execution_link, status_label
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.attached.ownership import page_context
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status


class LegendAdmin(ReadOnlyAdmin):
    """A list with a legend. Links narrow it to the rows of one execution, if it has `lookups_of_links`."""

    meanings: ClassVar[dict[Status, str]] = {
        Status.PENDING: "waits for a runner",
        Status.SCHEDULED: "given to a runner",
        Status.RUNNING: "at work",
        Status.ERROR: "failed",
        Status.STOPPED: "stopped, revoked or expired, or its chain broke",
        Status.SUCCESS: "done",
    }

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "legend": _legend(request, self.meanings), **page_context()}
        for lookup in self.lookups_of_links:
            if found := parse_id(request.GET.get(lookup, "")):
                context["execution_link"] = execution_link(found)
        return super().changelist_view(request, context)


def _legend(request: HttpRequest, meanings: dict[Status, str]) -> list[dict[str, Any]]:
    chosen = request.GET.get(STATUS_PARAMETER)
    entries = []
    for status, meaning in meanings.items():
        query = request.GET.copy()
        query.pop("p", None)
        if status == chosen:
            del query[STATUS_PARAMETER]
        else:
            query[STATUS_PARAMETER] = status
        entries.append(
            {
                "label": status_label(status, href=f"?{query.urlencode()}"),
                "meaning": meaning,
                "chosen": status == chosen,
            }
        )
    return entries


Counts = dict[str, int]


def task_counts(execution_ids: Iterable[int]) -> dict[int, Counts]:
    """Count the tasks of each execution by status. The index task_rollup alone answers this."""
    counts: dict[int, Counts] = defaultdict(dict)
    rows = Task.objects.filter(execution_id__in=list(execution_ids)).order_by()
    for pk, status, count in rows.values_list("execution_id", "status").annotate(count=Count("*")):
        counts[pk][status] = count
    return counts


class CountedChangeList(CappedChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        counts = task_counts(execution.pk for execution in self.result_list)
        for execution in self.result_list:
            execution.__dict__["task_counts"] = counts.get(execution.pk, {})
