"""Our pages on the admin sites of a project.

They are registered on the default site (`admin.site`). A project with a site of its own registers them there with
`register_admin(site)`. Nothing that the project has registered is replaced, not even a screen of its own for one
of our models.

The links of a page stay on the site of the page, because two sites may have our pages and let in different people.

An open page asks for its parts, and static/executions/live.js shows them without a reload. The answer is JSON:
`parts` are pieces of the page by name, and `every` is the time to the next question in milliseconds. An answer
that cannot be made has an error status: the page keeps what it shows, and asks again.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import URLPattern, reverse
from django.views.decorators.http import require_safe

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown, RefreshError

View = Callable[..., HttpResponseBase]
T = TypeVar("T", bound="type[admin.ModelAdmin[Any]]")

#: The screen of each of our models.
PAGES: dict[type[Model], "type[admin.ModelAdmin[Any]]"] = {}
#: The labels of our apps, whose packages `admin` fill PAGES.
OURS = ("harbor_executions", "harbor_tasks")

#: The name of the site whose page is made. It is set anew by each page, and is not reset, because Django renders
#: a page after its view has returned.
_site_name: ContextVar[str] = ContextVar("_site_name", default="")


def page(model: type[Model]) -> Callable[[T], T]:
    """Register the screen of this model on the default site."""

    def register(screen: T) -> T:
        PAGES[model] = screen
        _add(admin.site, model)
        return screen

    return register


def register_admin(site: admin.AdminSite) -> None:
    """Register the pages of Harbor Refresh on an admin site of the project. The default site has them already."""
    for app in apps.get_app_configs():
        if app.label in OURS:
            import_module(f"{app.name}.admin")
    for model in PAGES:
        _add(site, model)


def _add(site: admin.AdminSite, model: type[Model]) -> None:
    if not site.is_registered(model):
        site.register(model, PAGES[model])


def on_its_site(patterns: Sequence[URLPattern], site: admin.AdminSite) -> list[URLPattern]:
    """These patterns, with views that note the site."""

    def noting(view: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(view)
        def answer(*args: Any, **options: Any) -> Any:
            _site_name.set(site.name)
            return view(*args, **options)

        return answer

    for pattern in patterns:
        pattern.callback = noting(pattern.callback)
    return list(patterns)


def admin_url(name: str, *args: Any) -> str:
    """The address of a page of ours, on the site of the page that is made, or else on any site that has it."""
    sites = (site.name for site in all_sites if PAGES.keys() & site._registry.keys())
    return reverse(f"admin:{name}", args=args, current_app=_site_name.get() or next(sites, None))


#: What an open page shows for a 503 of ours; a proxy also answers 503.
DOWN = {"X-Trouble": "PostgreSQL is unavailable"}
NOT_STORED = {"Cache-Control": "private, no-store"}


def live_view(may_view: Callable[[HttpRequest], bool], news: Callable[..., dict[str, Any]]) -> View:
    """Return a view that answers an open page with news: 403 if the user may not view them, because a redirect
    to the login would put its form into the page; 404 for a row that is gone, 503 without the database."""

    @require_safe
    def view(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        try:
            with absence_translated():
                if may_view(request):
                    return JsonResponse(news(request, *args, **options), headers=NOT_STORED)
                return HttpResponse(status=403)
        except DatabaseDown:
            return HttpResponse(status=503, headers=DOWN)
        except RefreshError:
            return HttpResponse(status=404)

    return view
