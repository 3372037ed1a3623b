"""Access to the answers of live pages: for staff with the permissions of the page.

A page asks every few seconds, and its session and permissions are three queries. So a process remembers its
answer for REMEMBERED_SECONDS: after a sign-out, or when a permission is withdrawn, an open page goes on for that
time at most. Only what a page shows is read this way; every other page, and every action, is checked each time.
"""

import hashlib
import threading
from time import monotonic

from django.conf import settings
from django.contrib.admin import AdminSite
from django.http import HttpRequest

REMEMBERED_SECONDS = 30.0
MOST_REMEMBERED = 1_000

_lock = threading.Lock()
#: The permissions that a session has and until when that counts, by the hash of its key and what was asked.
_remembered: dict[tuple[bytes, tuple[str, ...]], tuple[float, frozenset[str]]] = {}


def permissions_of(request: HttpRequest, *asked: str) -> frozenset[str]:
    """Return those of the permissions that the user has. Only staff has any."""
    user = request.user
    return frozenset(one for one in asked if user.is_active and user.is_staff and user.has_perm(one))


def remembered_permissions(request: HttpRequest, site: AdminSite, *asked: str) -> frozenset[str]:
    """Return those of the permissions that the user of this session has, or had a moment ago. A site that decides
    by itself whom it lets in, for example by a second factor, is asked each time."""
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
