"""What Flower's pages lack: every queue on the Broker page, a link back to the admin, a header against frames, and
a cookie that is sent by HTTPS alone."""

from typing import Any

from django.conf import settings
from flower.urls import settings as flower_settings
from flower.views import BaseHandler
from tornado.escape import xhtml_escape
from tornado.template import Loader, Template

from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.flower.login import asked

_of_flower = BaseHandler.get_active_queue_names
_set_headers = BaseHandler.set_default_headers
#: The list of links at the top of each page begins so.
_LINKS = '<ul class="app-nav navbar-nav">'


def adapt() -> None:
    BaseHandler.get_active_queue_names = queue_names  # type: ignore[method-assign]
    BaseHandler.set_default_headers = set_headers  # type: ignore[method-assign]
    flower_settings["xsrf_cookie_kwargs"] = {"secure": settings.SESSION_COOKIE_SECURE, "samesite": "Lax"}
    flower_settings["template_loader"] = LinksToTheAdmin(flower_settings["template_path"])


def set_headers(handler: Any) -> None:
    _set_headers(handler)  # type: ignore[no-untyped-call]
    handler.set_header("X-Frame-Options", "DENY")


def queue_names(handler: Any) -> list[str]:
    """Return those that Flower has seen a worker take from, and those that the settings and the database know.
    Without this, Flower would not show a queue that no worker takes from."""
    # here, because Flower reads its options before there are apps
    from harbor_refresh.tasks.operations.queue_names import declared, known

    try:
        ours = asked(known)
    except Exception:  # the database is away
        ours = declared()
    return sorted({*_of_flower(handler), *ours})  # type: ignore[no-untyped-call]


class LinksToTheAdmin(Loader):
    """Flower's templates, with a link to the admin at the top of each page if its address is known."""

    def _create_template(self, name: str) -> Template:
        template: Template = super()._create_template(name)
        admin = intake_settings().public_url
        if name != "navbar.html" or not admin:
            return template
        with open(f"{self.root}/{name}", encoding="utf-8") as file:
            text = file.read()
        address = xhtml_escape(f"{admin.rstrip('/')}/admin/").replace("{", "%7B")
        link = f'{_LINKS}<li class="nav-item"><a class="nav-link" href="{address}">Admin</a></li>'
        return Template(text.replace(_LINKS, link, 1), name=name, loader=self)
