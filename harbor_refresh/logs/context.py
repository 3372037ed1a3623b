"""The ids of the work of this thread, which are added to every line that it writes meanwhile: of a Celery task its
name, its message and the executions that a subtask of ours names; of a request its id. Arguments of tracked jobs
are never added, because they may hold secrets."""

import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar

from celery._state import get_current_worker_task  # Celery's own log takes it from there, too
from django.http import HttpRequest, HttpResponse

from harbor_refresh.tasks.queue.node import this_node

_request_id: ContextVar[str] = ContextVar("harbor_refresh_request_id", default="")
LONGEST_ARGUMENTS = 120
HEADER = "X-Request-ID"
#: An id of a proxy. Anything else is replaced, because it goes into the log and back in a header.
USABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")


def ids() -> dict[str, str]:
    """Return the ids of what this thread does now. A request may run a task (task_always_eager)."""
    found: dict[str, str] = {}
    if request_id := _request_id.get():
        found["request"] = request_id
    if task := get_current_worker_task():
        found |= {"celery_task": task.name, "celery_id": str(task.request.id), "node": this_node.name}
        shown = task.request.get("argsrepr")
        if task.name.startswith("tasks.") and isinstance(shown, str) and shown not in ("()", ""):
            found["arguments"] = shown[:LONGEST_ARGUMENTS]
    return found


class RequestIds:
    """Take the id that a proxy sent, or make one; add it to the lines; send it with the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        name = given if USABLE.fullmatch(given) else secrets.token_hex(8)
        token = _request_id.set(name)
        try:
            response = self._get_response(request)
        finally:
            _request_id.reset(token)
        response[HEADER] = name
        return response
