"""What Flower's pages lack: a header against frames, and a cookie that is sent by HTTPS alone."""

from typing import Any

from django.conf import settings
from flower.urls import settings as flower_settings
from flower.views import BaseHandler

_set_headers = BaseHandler.set_default_headers


def adapt() -> None:
    BaseHandler.set_default_headers = set_headers  # type: ignore[method-assign]
    flower_settings["xsrf_cookie_kwargs"] = {"secure": settings.SESSION_COOKIE_SECURE, "samesite": "Lax"}


def set_headers(handler: Any) -> None:
    _set_headers(handler)  # type: ignore[no-untyped-call]
    handler.set_header("X-Frame-Options", "DENY")
