"""The state of the queue over HTTP; pause and resume."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import needs
from harbor_refresh.executions.api.schemas import NO_NUL, Body
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.executions.news.audit import person_of
from harbor_refresh.tasks.broker.celery_queues import JOBS, WORK
from harbor_refresh.tasks.models.state import MAX_QUEUE, MAX_REASON
from harbor_refresh.tasks.operations.pauses import pause, paused, resume
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.strategies import strategy

router = Router(tags=["Queue"])


class PauseOut(Schema):
    queue: str = Field(description=f"The name of the queue in the broker. `{WORK}` stands for refreshing.")
    at: datetime = Field(description="When it was paused.")
    by: str = Field(description="The person or the token that paused it.")
    reason: str


class QueueName(Body):
    queue: str = Field(
        WORK,
        min_length=1,
        max_length=MAX_QUEUE,
        pattern=NO_NUL,
        description=f"The name of the queue in the broker. `{WORK}` stands for refreshing.",
        examples=[JOBS],
    )


class PauseIn(QueueName):
    reason: str = Field(
        "",
        max_length=MAX_REASON,
        pattern=NO_NUL,
        description="The reason, shown on status pages.",
        examples=["upgrade"],
    )


class Changed(Schema):
    changed: bool = Field(description="False: the queue was already in this state.")


class QueueOut(Schema):
    backlog: int = Field(description="Executions that wait for a refresh.")
    in_flight: int = Field(description="Executions that are claimed and not yet refreshed.")
    failed_before: int = Field(description="Waiting or claimed executions whose refresh failed at least once.")
    quarantined: int = Field(description="Executions that failed too often and are not refreshed.")
    nodes: int = Field(description="Live worker processes.")
    paused: list[PauseOut] = Field(description="The paused queues; their work waits.")


@router.get("/queue", **needs(Scope.READ, "Show the queue", QueueOut))
def get_queue(request: HttpRequest) -> Any:
    stats = execution_queue().stats()
    return {
        "backlog": strategy().backlog(),
        "in_flight": stats.in_flight,
        "failed_before": stats.failed_before,
        "quarantined": Quarantine.objects.count(),
        "nodes": len(stats.nodes),
        "paused": [*paused().values()],
    }


@router.post("/queue/pause", **needs(Scope.MANAGE, "Pause a queue", Changed, 400, 404))
def pause_queue(request: HttpRequest, body: PauseIn) -> Any:
    """Its work waits until it is resumed, even if all processes restart. Work that has begun continues, and plain
    Celery tasks are not paused."""
    return {"changed": pause(body.queue, person_of(request), body.reason)}


@router.post("/queue/resume", **needs(Scope.MANAGE, "Resume a queue", Changed, 400, 404))
def resume_queue(request: HttpRequest, body: QueueName) -> Any:
    return {"changed": resume(body.queue, person_of(request))}
