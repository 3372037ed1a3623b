"""The progress of one execution as server-sent events over HTTP."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.answers import answers, detail
from harbor_refresh.executions.api.problems import RETRY_AFTER, Problem
from harbor_refresh.executions.api.schemas import ExecutionId
from harbor_refresh.executions.errors import TooManyStreams
from harbor_refresh.executions.queries.event_stream import stream

router = Router(tags=["Executions"])

EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
EXAMPLE = {"event": "end", "data": '{"id": 17, "status": "Success", "progress": 1.0}'}


@router.get(
    "/executions/{execution_id}/events",
    auth=may(Scope.READ),
    response=answers({200: None}, 404),
    summary="Follow the progress of an execution",
    openapi_extra={"responses": {200: {"content": {"text/event-stream": {"schema": EVENT, "example": EXAMPLE}}}}},
)
def follow(request: HttpRequest, execution_id: ExecutionId) -> Any:
    """Server-sent events. `progress` has the execution with its counts, at once and after each change. `end` has
    the same when the execution has ended; then the stream ends. After five minutes the stream ends without `end`:
    open another one."""

    def read() -> dict[str, Any]:
        return detail(execution_id).model_dump(mode="json")

    try:
        return stream(read)
    except TooManyStreams as exc:
        raise Problem(503, "Too many streams", str(exc), {"Retry-After": str(RETRY_AFTER)}) from exc
