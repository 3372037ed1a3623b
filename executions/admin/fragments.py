"""Fragments: parts of a page that the page loads again by itself, with htmx, which is a part of unfold.

A fragment that cannot be made is answered with an error status. Then htmx leaves the old part in place and asks
again. A redirect to the login would put the login form into the page.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, RefreshError

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

View = Callable[..., HttpResponse]


def fragment(admin: "ModelAdmin[Any]", view: View) -> View:
    """Wrap a view of a fragment: 403 without the permission to view, 404 for a row that is gone, 503 without the
    database."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        if not (admin.admin_site.has_permission(request) and admin.has_view_permission(request)):
            return HttpResponse(status=403)
        try:
            with absence_translated():
                response = view(request, *args, **options)
        except DatabaseAway:
            return HttpResponse(status=503)
        except RefreshError:
            return HttpResponse(status=404)
        response.headers["Cache-Control"] = "no-store"
        return response

    return answer
