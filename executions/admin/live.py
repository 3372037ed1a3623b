"""Live pages: an open page asks for what has changed, and static/executions/live.js shows it without a reload.

The answer is JSON: `parts` are pieces of the page by name, `every` is the time to the next question in
milliseconds, and `reload` says that the page must be loaded anew. If nothing has changed since the last answer, it
is 304 without a body. An answer that cannot be made has an error status: the page keeps what it shows, and asks
again. A redirect to the login would put the login form into the page.
"""

import hashlib
import json
import threading
from collections.abc import Callable
from functools import wraps
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.conf import settings
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, RefreshError

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

V = TypeVar("V")

REMEMBERED_SECONDS = 30.0
MOST_REMEMBERED = 1_000

_lock = threading.Lock()
#: The permissions that a session has and until when that counts, by the hash of its key and what was asked.
_remembered: dict[tuple[bytes, tuple[str, ...]], tuple[float, frozenset[str]]] = {}


def encoded(news: dict[str, Any]) -> bytes:
    return json.dumps(news).encode()


def answer(request: HttpRequest, body: bytes) -> HttpResponse:
    """Answer with this body, or with 304 if the page has it."""
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(body, content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-store"
    return response


def live_view(admin: "ModelAdmin[Any]", news: Callable[..., dict[str, Any]]) -> Callable[..., HttpResponse]:
    """A view that answers with these news of a row: 403 without the permission to view, 404 for a row that is
    gone, 503 without the database."""

    @wraps(news)
    def view(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        if not (admin.admin_site.has_permission(request) and admin.has_view_permission(request)):
            return HttpResponse(status=403)
        try:
            with absence_translated():
                return answer(request, encoded(news(request, *args, **options)))
        except DatabaseAway:
            return HttpResponse(status=503)
        except RefreshError:
            return HttpResponse(status=404)

    return view


def permissions_of(request: HttpRequest, *asked: str) -> frozenset[str]:
    """Return those of the permissions that the user has. Only staff has any."""
    user = request.user
    return frozenset(one for one in asked if user.is_active and user.is_staff and user.has_perm(one))


def remembered_permissions(request: HttpRequest, site: AdminSite, *asked: str) -> frozenset[str]:
    """Return those of the permissions that the user of this session has, or had a moment ago.

    A page asks every few seconds, and its session and permissions are three queries. So a process remembers its
    answer for REMEMBERED_SECONDS: after a sign-out, or when a permission is withdrawn, an open page goes on for
    that time at most. Only what all pages share is read this way; every other page, and every action, is checked
    each time. A site that decides by itself whom it lets in, for example by a second factor, is asked each time.
    """
    if type(site).has_permission is not AdminSite.has_permission and not site.has_permission(request):
        return frozenset()
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    place = (hashlib.blake2b(key.encode(errors="replace"), digest_size=16).digest(), asked)
    now = monotonic()
    until, known = _remembered.get(place, (0.0, frozenset[str]()))
    if key and until > now:
        return known
    found = permissions_of(request, *asked)
    if found:
        with _lock:
            if len(_remembered) >= MOST_REMEMBERED:
                _remembered.clear()
            _remembered[place] = (now + REMEMBERED_SECONDS, found)
    return found


class Shared(Generic[V]):
    """A value that a process makes once in `fresh` seconds for all pages that ask.

    While one thread makes it, the other threads get the value before. If that is `stale` seconds old, or if there
    is none, they wait for `stale` seconds at most, and then get None.
    """

    def __init__(self, make: Callable[[], V], *, fresh: float, stale: float) -> None:
        self._make = make
        self.fresh, self.stale = fresh, stale
        self._lock = threading.Lock()
        self._latest: tuple[float, V] | None = None

    def value(self) -> V | None:
        if (known := self._younger_than(self.fresh)) is not None:
            return known
        before = self._younger_than(self.stale)
        if not self._lock.acquire(timeout=self.stale if before is None else 0):
            return before
        try:
            known = self._younger_than(self.fresh)  # made while this thread waited
            if known is None:
                begun = monotonic()
                known = self._make()
                self._latest = (begun, known)
            return known
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Make it anew for the next page."""
        self._latest = None

    def _younger_than(self, seconds: float) -> V | None:
        latest = self._latest
        return latest[1] if latest and monotonic() - latest[0] < seconds else None
