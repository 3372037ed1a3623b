"""The progress of executions for the screens of a host, as JSON and as a server-sent event, at its own addresses.

The host says who may see an execution. Without that there are no addresses: it is an argument that must be given.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries.progress import progress
from harbor_refresh.executions.status import is_final

#: How long an `EventSource` waits before it asks again.
MILLISECONDS_BETWEEN = 1_000

#: Whether the user of this request may see this execution. Only True says yes.
MaySee = Callable[[HttpRequest, Execution], bool]


def execution_urls(*, may_see: MaySee) -> list[URLPattern]:
    """Return the addresses `ID/` and `ID/events/`, for `include` in the URLs of a project:

        path("mirrors/", include(execution_urls(may_see=may_see_mirror)))

    They are named `execution_progress` and `execution_events`.

    Args:
        may_see: A function of the request and the execution. Unless it returns True, the answer is 404, as if the
            execution did not exist. It may raise PermissionDenied instead.
    """
    if not callable(may_see):
        raise TypeError("execution_urls takes may_see=, a function of the request and the execution")

    def guarded(answer: Callable[[dict[str, Any]], HttpResponse]) -> Callable[..., HttpResponse]:
        @require_safe
        def view(request: HttpRequest, execution_id: int) -> HttpResponse:
            execution = Execution.objects.filter(pk=execution_id).first()
            # a coroutine of an async function is not False, and says nothing
            if execution is None or may_see(request, execution) is not True:
                raise Http404
            try:
                return answer(shown(execution_id))
            except NoSuchExecution:  # it was deleted just now
                raise Http404 from None

        return view

    as_json = partial(JsonResponse, headers={"Cache-Control": "no-store"})
    return [
        path("<int:execution_id>/", guarded(as_json), name="execution_progress"),
        path("<int:execution_id>/events/", guarded(event), name="execution_events"),
    ]


def shown(execution_id: int) -> dict[str, Any]:
    """Return the progress as a screen shows it, without messages and attributes, which may be for operators alone.
    Raises NoSuchExecution."""
    made = progress(execution_id)
    return {
        "id": execution_id,
        "status": made.status,
        "tasks": made.total,
        "done": made.done,
        "progress": made.share,
        "counts": made.counts,
        "seconds_left": None if made.eta is None else round(made.eta.total_seconds()),
        "is_open": made.is_open,
    }


def event(told: dict[str, Any]) -> HttpResponse:
    """Answer with one server-sent event: `end` if the execution has ended, else `progress`. An `EventSource` asks
    again after `retry` milliseconds, until its page closes it at the `end`. So no thread waits for a change."""
    name = "end" if is_final(told["status"]) else "progress"
    text = f"retry: {MILLISECONDS_BETWEEN}\nevent: {name}\ndata: {json.dumps(told)}\n\n"
    return HttpResponse(text, content_type="text/event-stream", headers={"Cache-Control": "no-store"})
