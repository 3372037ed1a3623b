"""The state of the queue over HTTP."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from executions.api.access import Scope, may
from executions.api.answers import answers
from executions.models import Quarantine
from tasks.pipeline import marks
from tasks.queue import execution_queue

router = Router(tags=["Queue"])


class QueueOut(Schema):
    backlog: int = Field(description="Executions that wait for a refresh.")
    in_flight: int = Field(description="Executions that are claimed and not yet refreshed.")
    failed_before: int = Field(description="Of these two, those whose refresh failed at least once.")
    quarantined: int = Field(description="Executions that failed too often, and are left alone.")
    nodes: int = Field(description="Live worker processes.")


@router.get("/queue", auth=may(Scope.READ), response=answers({200: QueueOut}), summary="Look at the queue")
def get_queue(request: HttpRequest) -> Any:
    stats = execution_queue().stats()
    return {
        "backlog": marks.backlog(),
        "in_flight": stats.in_flight,
        "failed_before": stats.failed_before,
        "quarantined": Quarantine.objects.count(),
        "nodes": len(stats.nodes),
    }
