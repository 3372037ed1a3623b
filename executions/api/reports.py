"""Reports over HTTP, thousands in one request."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from harbor_refresh.executions.api.access import may_report, taken_once
from harbor_refresh.executions.api.answers import answers
from harbor_refresh.executions.api.schemas import ReportsIn, ReportsOut
from harbor_refresh.executions.lifecycle.reports import Report, Source, report

router = Router(tags=["Reports"])


@router.post(
    "/reports",
    auth=may_report,
    response=answers({200: ReportsOut}, 400, 409, 413),
    summary="Report the status of many tasks",
)
def report_many(request: HttpRequest, body: ReportsIn) -> Any:
    """Each report has a result: `applied`; `unchanged`, because it was repeated, late or out of order; or
    `refused`, with the reason. A refused report does not stop the others. Reports are applied in the given
    order."""
    given = [Report(one.task_id, one.status, one.revision, one.message, one.earlier_runs) for one in body.reports]
    with taken_once(request):
        outcome = report(given, Source.API)
    results = [
        {"position": position, "task_id": one.task_id, "result": "unchanged", "reason": None}
        for position, one in enumerate(given)
    ]
    for position in outcome.applied_at:
        results[position]["result"] = "applied"
    for refusal in outcome.refused:
        results[refusal.position] |= {"result": "refused", "reason": refusal.reason}
    return {
        "applied": outcome.applied,
        "unchanged": outcome.unchanged,
        "refused": len(outcome.refused),
        "results": results,
    }
