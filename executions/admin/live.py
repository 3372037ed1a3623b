"""Live pages: an open page asks for what has changed, and static/executions/live.js shows it without a reload.

The answer is JSON: `parts` are pieces of the page by name, `every` is the time to the next question in
milliseconds, and `reload` says that the page must be loaded anew. If nothing has changed since the last answer, it
is 304 without a body. An answer that cannot be made has an error status: the page keeps what it shows, and asks
again. A redirect to the login would put the login form into the page.
"""

import hashlib
import json
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, RefreshError

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

#: What an open page shows for a 503 of ours; a proxy also answers 503.
AWAY = {"X-Trouble": "PostgreSQL is unavailable"}


def answer(request: HttpRequest, may_view: Callable[[], bool], news: Callable[[], dict[str, Any]]) -> HttpResponse:
    """Answer with the news, or with 304 if the page has them: 403 if the user may not view them, 404 for a row
    that is gone, 503 without the database."""
    try:
        with absence_translated():
            if not may_view():
                return HttpResponse(status=403)
            body = json.dumps(news()).encode()
    except DatabaseAway:
        return HttpResponse(status=503, headers=AWAY)
    except RefreshError:
        return HttpResponse(status=404)
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(body, content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-store"
    return response


def live_view(admin: "ModelAdmin[Any]", news: Callable[..., dict[str, Any]]) -> Callable[..., HttpResponse]:
    """Return a view that answers with these news to users who may view the rows of this admin."""

    @wraps(news)
    def view(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        def may_view() -> bool:
            return admin.admin_site.has_permission(request) and admin.has_view_permission(request)

        return answer(request, may_view, partial(news, request, *args, **options))

    return view
