"""The legend above the lists: the meaning of each status. A click on a status filters the list by it."""

from typing import Any

from django.http import HttpRequest

from harbor_refresh.executions.admin.formatters import status_label
from harbor_refresh.executions.status import Status

STATUS_PARAMETER = "status__exact"

EXECUTION_MEANINGS = {
    Status.RUNNING: "a task is not finished",
    Status.ERROR: "all finished, a task failed",
    Status.STOPPED: "none failed, a task was stopped",
    Status.SUCCESS: "every task succeeded",
}
TASK_MEANINGS = {
    Status.PENDING: "waits for a runner",
    Status.SCHEDULED: "given to a runner",
    Status.RUNNING: "at work",
    Status.ERROR: "failed",
    Status.STOPPED: "stopped, revoked or expired, or its chain broke",
    Status.SUCCESS: "done",
}


def legend_context(request: HttpRequest, meanings: dict[Status, str]) -> dict[str, Any]:
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
    return {"legend": entries, "legend_chosen": chosen}
