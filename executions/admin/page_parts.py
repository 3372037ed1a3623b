"""Lists of rows with a status: the legend above each, and the tasks of executions, counted by status."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.base import ReadOnlyAdmin
from harbor_refresh.executions.admin.filters import parse_id
from harbor_refresh.executions.admin.formatters import STATUS_PARAMETER, execution_link, status_label
from harbor_refresh.executions.attached.ownership import page_context
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status


class LegendAdmin(ReadOnlyAdmin):
    """A list with a legend. Links narrow it to the rows of one execution, if it has `lookups_of_links`."""

    list_head = "executions/admin/list_head.html"
    meanings: ClassVar[dict[Status, str]] = {
        Status.PENDING: "waits for a runner",
        Status.SCHEDULED: "given to a runner",
        Status.RUNNING: "at work",
        Status.ERROR: "failed",
        Status.STOPPED: "stopped, revoked or expired, or its chain broke",
        Status.SUCCESS: "done",
    }

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "legend": self._legend(request), **page_context()}
        for lookup in self.lookups_of_links:
            if found := parse_id(request.GET.get(lookup, "")):
                context["execution_link"] = execution_link(found)
        return super().changelist_view(request, context)

    def _legend(self, request: HttpRequest) -> Iterator[tuple[SafeString, str, bool]]:
        """The label and the meaning of each status, and whether it filters. A click on it changes that."""
        chosen = request.GET.get(STATUS_PARAMETER)
        for status, meaning in self.meanings.items():
            query = request.GET.copy()
            query.pop("p", None)
            query.pop(STATUS_PARAMETER, None)
            if status != chosen:
                query[STATUS_PARAMETER] = status
            yield status_label(status, href=f"?{query.urlencode()}"), meaning, status == chosen


Counts = dict[str, int]


def task_counts(execution_ids: Iterable[int]) -> dict[int, Counts]:
    """Count the tasks of each execution by status. The index task_rollup alone answers this."""
    counts: dict[int, Counts] = defaultdict(dict)
    rows = Task.objects.filter(execution_id__in=list(execution_ids)).order_by()
    for pk, status, count in rows.values_list("execution_id", "status").annotate(count=Count("*")):
        counts[pk][status] = count
    return counts
