"""The progress of one execution as server-sent events, while it is made."""

import json
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from executions.api.access import Scope, may
from executions.api.answers import answers, detail
from executions.api.problems import RETRY_AFTER, Problem
from executions.api.schemas import ExecutionDetail, ExecutionId
from executions.conf import intake_settings
from executions.errors import RefreshError
from executions.status import is_final

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

SECONDS_BETWEEN = 1.0
#: A proxy closes a stream that is silent for a minute.
SECONDS_OF_SILENCE = 15.0
#: A stream ends by then, and the caller opens another one, so that no web process waits for it when it restarts.
SECONDS_OF_A_STREAM = 300.0


class _Streams:
    """The open streams of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def enter(self) -> None:
        with self._lock:
            if self._count >= intake_settings().streams:
                raise Problem(
                    503,
                    "Too many streams",
                    f"this process serves {self._count} event streams, its most (REFRESH_API_STREAMS)",
                    {"Retry-After": str(RETRY_AFTER)},
                )
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1


_streams = _Streams()


@router.get(
    "/executions/{execution_id}/events",
    auth=may(Scope.READ),
    response=answers({200: None}, 404),
    summary="Follow the progress of an execution",
    openapi_extra={"responses": {200: {"content": {"text/event-stream": {"schema": EVENT, "example": EXAMPLE}}}}},
)
def follow(request: HttpRequest, execution_id: ExecutionId) -> Any:
    """Server-sent events. `progress`: the execution with its counts, at once and whenever they change. `end`: the
    same, when it has ended; the stream ends then. After five minutes it ends without that: open another one."""
    first = detail(execution_id)
    _streams.enter()
    return StreamingHttpResponse(
        _Stream(first), content_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


class _Stream:
    """The events as text. Closing it makes room for another one, even if its first event was never read."""

    def __init__(self, first: ExecutionDetail) -> None:
        self._events = _events(first)
        self._is_open = True

    def __iter__(self) -> Iterator[str]:
        return self._events

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._events.close()
            _streams.leave()


def _events(shown: ExecutionDetail) -> Generator[str, None, None]:
    end = time.monotonic() + SECONDS_OF_A_STREAM
    told = time.monotonic()
    yield _event(shown)
    while not is_final(shown.status) and time.monotonic() < end:
        time.sleep(SECONDS_BETWEEN)
        try:
            now = detail(shown.id)
        except RefreshError:  # it was deleted
            return
        if now != shown:
            shown, told = now, time.monotonic()
            yield _event(shown)
        elif time.monotonic() - told > SECONDS_OF_SILENCE:
            told = time.monotonic()
            yield ": still here\n\n"


def _event(shown: ExecutionDetail) -> str:
    name = "end" if is_final(shown.status) else "progress"
    return f"event: {name}\ndata: {json.dumps(shown.model_dump(mode='json'))}\n\n"
