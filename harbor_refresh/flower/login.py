"""Let users of the admin into Flower: each request is checked by the session cookie of the admin.

Browsers send a cookie to every port of a host. So Flower sees the session of the admin if both have the same
host name, whether on two ports or behind one proxy. A user who logs out of the admin, or loses a right, loses
access to Flower at once. With FLOWER_BASIC_AUTH, Flower's own check applies instead.
Its pages get what they lack as well: a header against frames, and a cookie that is sent by HTTPS alone.
"""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from flower.urls import settings as flower_settings
from flower.views import BaseHandler
from flower.views.auth import get_next_url
from flower.views.monitor import Metrics
from tornado.web import HTTPError, authenticated

from harbor_refresh.executions.conf import intake_settings

#: How long a request waits for the database.
PATIENCE_SECONDS = 5.0
DENIED = "You need the permission to view executions. If Flower is not read-only, only superusers can use it."

_of_flower = BaseHandler.get_current_user
_set_headers = BaseHandler.set_default_headers
#: Django refuses queries in the thread of an event loop. One thread has one connection.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="login")


def adapt() -> None:
    """Make Flower ask for the session of the admin, unless it is told to use basic auth; also for its metrics."""
    BaseHandler.get_current_user = current_user  # type: ignore[method-assign]
    Metrics.get = authenticated(Metrics.get)  # type: ignore[method-assign,assignment]
    BaseHandler.set_default_headers = set_headers  # type: ignore[method-assign]
    flower_settings["xsrf_cookie_kwargs"] = {"secure": settings.SESSION_COOKIE_SECURE, "samesite": "Lax"}


def set_headers(handler: Any) -> None:
    _set_headers(handler)  # type: ignore[no-untyped-call]
    handler.set_header("X-Frame-Options", "DENY")


def current_user(handler: Any) -> Any:
    options = handler.application.options
    if options.basic_auth:
        return _of_flower(handler)  # type: ignore[no-untyped-call]
    session = handler.get_cookie(settings.SESSION_COOKIE_NAME) or ""
    try:
        name = _thread.submit(_staff_of, session, options.read_only).result(PATIENCE_SECONDS)
    except Exception:  # the database is down
        return None
    if name is None:  # a redirect to the admin, which leads back, would have no end
        raise HTTPError(403, DENIED)
    return name or None


def _staff_of(session: str, is_read_only: bool) -> str | None:
    """Return the name of the user of this session; an empty one if the session has no user who may use the admin;
    None if this user may not use Flower."""
    if not session:
        return ""
    close_old_connections()
    store = import_module(settings.SESSION_ENGINE).SessionStore(session)
    user = get_user(SimpleNamespace(session=store))  # type: ignore[arg-type]  # it reads the session alone
    if not (user.is_active and user.is_staff):
        return ""
    may = user.has_perm("harbor_executions.view_execution") if is_read_only else user.is_superuser
    return user.get_username() if may else None


class AdminLogin(BaseHandler):
    """Flower's page `/login`. It redirects to the admin's page `/admin/flower/`, which leads back to Flower after
    the login."""

    async def get(self) -> None:
        if self.current_user:
            self.redirect(get_next_url(self))  # type: ignore[no-untyped-call]
        elif admin := intake_settings().public_url:
            self.redirect(f"{admin.rstrip('/')}/admin/flower/")
        else:
            self.set_status(403)
            self.finish("Log in to the admin under this host name first, then load this page again.")
