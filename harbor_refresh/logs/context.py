"""The ids of the work of this thread, which are added to every line that it writes meanwhile: of a Celery task its
name, its message and the executions that a subtask of ours names; of a request its id. Arguments of tracked jobs
are never bound, because they may hold secrets."""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from celery import signals
from django.http import HttpRequest, HttpResponse

from harbor_refresh.tasks.queue.node import this_node

#: The innermost comes last. A task may run inside another one (task_always_eager).
_bound: ContextVar[tuple[Mapping[str, str], ...]] = ContextVar("harbor_refresh_log_context", default=())
LONGEST_ARGUMENTS = 120
HEADER = "X-Request-ID"
#: An id of a proxy. Anything else is replaced, because it goes into the log and back in a header.
USABLE = re.compile(r"[A-Za-z0-9._-]{1,64}")


def ids() -> dict[str, str]:
    """Return what is bound in this thread."""
    return {name: value for level in _bound.get() for name, value in level.items()}


@contextmanager
def bound(**values: str) -> Iterator[None]:
    token = _bound.set((*_bound.get(), values))
    try:
        yield
    finally:
        _bound.reset(token)


def on_task_prerun(task_id: str, task: Any, **_: Any) -> None:
    values = {"celery_task": task.name, "celery_id": task_id, "node": this_node.name}
    shown = getattr(task.request, "argsrepr", None)
    if task.name.startswith("tasks.") and isinstance(shown, str) and shown not in ("()", ""):
        values["arguments"] = shown[:LONGEST_ARGUMENTS]
    _bound.set((*_bound.get(), values))


def on_task_postrun(**_: Any) -> None:
    _bound.set(_bound.get()[:-1])


def connect() -> None:
    signals.task_prerun.connect(on_task_prerun, dispatch_uid="logs.context.begin")
    signals.task_postrun.connect(on_task_postrun, dispatch_uid="logs.context.end")


class RequestIds:
    """Take the id that a proxy sent, or make one; bind it; send it with the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        name = given if USABLE.fullmatch(given) else secrets.token_hex(8)
        with bound(request=name):
            response = self._get_response(request)
        response[HEADER] = name
        return response
