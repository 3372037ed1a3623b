"""Live pages: an open page asks for its parts, and static/executions/live.js shows them without a reload.

The answer is JSON: `parts` are pieces of the page by name, and `every` is the time to the next question in
milliseconds. An answer that cannot be made has an error status: the page keeps what it shows, and asks again. A
redirect to the login would put the login form into the page.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, RefreshError

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

#: What an open page shows for a 503 of ours; a proxy also answers 503.
AWAY = {"X-Trouble": "PostgreSQL is unavailable"}
NOT_STORED = {"Cache-Control": "private, no-store"}


def answer(may_view: Callable[[], bool], news: Callable[[], dict[str, Any]]) -> HttpResponse:
    """Answer with the news: 403 if the user may not view them, 404 for a row that is gone, 503 without the
    database."""
    try:
        with absence_translated():
            return JsonResponse(news(), headers=NOT_STORED) if may_view() else HttpResponse(status=403)
    except DatabaseAway:
        return HttpResponse(status=503, headers=AWAY)
    except RefreshError:
        return HttpResponse(status=404)


def live_view(admin: "ModelAdmin[Any]", news: Callable[..., dict[str, Any]]) -> Callable[..., HttpResponse]:
    """Return a view that answers with these news to users who may view the rows of this admin."""

    @wraps(news)
    def view(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        return answer(
            lambda: admin.admin_site.has_permission(request) and admin.has_view_permission(request),
            partial(news, request, *args, **options),
        )

    return view
