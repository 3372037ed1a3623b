"""The HTTP API of the service: the routers of both apps under one address, with one description."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern
from ninja import NinjaAPI
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.docs import Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.renderers import BaseRenderer
from pydantic_core import to_json

from harbor_refresh.api_description import Description
from harbor_refresh.executions.api import deliveries, executions, problems, subscriptions
from harbor_refresh.executions.api import tasks as tasks_of_executions
from harbor_refresh.executions.api.parsing import BoundedParser
from harbor_refresh.tasks.api import actions, jobs, queue, verbs


class Renderer(BaseRenderer):
    """Write answers with Pydantic, in a tenth of the time of Django's encoder, and times to the microsecond."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return to_json(data)


class Page(Swagger):
    """The page of the API, with Ninja's files from this service. Ninja itself would take them from another site,
    because it is no installed app here (settings/base.py)."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        told = self.settings | {"url": self.get_openapi_url(api, kwargs)}
        return render(request, self.template, {"api": api, "swagger_settings": json.dumps(told, indent=1)})


class Api(NinjaAPI):
    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        problems.refuse_many_errors(error_contexts)
        return super().validation_error_from_error_contexts(error_contexts)

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        return Description(self, self.get_root_path(path_params or {}) if path_prefix is None else path_prefix)


#: The page of the API, /api/v1/docs: operations can be searched and tried; the schemas stand folded at its end.
PAGE = {"filter": True, "tryItOutEnabled": True, "displayRequestDuration": True, "defaultModelsExpandDepth": 0}
#: The groups of operations in the order of that page: what a runner needs first comes first.
GROUPS = ("Executions", "Tasks", "Reports", "Actions on many executions", "Subscriptions", "Queue")

api = Api(
    title="Harbor Refresh",
    version="1",
    description=(
        "Create executions, report the status of their tasks, and ask how they are.\n\n"
        "To try an operation here, press *Authorize* and paste an API token, which an administrator makes in the "
        "[admin](/admin/harbor_executions/apitoken/). This page keeps it until it is closed."
    ),
    docs=Page(PAGE),
    openapi_extra={"tags": [{"name": name} for name in GROUPS]},
    parser=BoundedParser(),
    renderer=Renderer(),
    urls_namespace="api",
)
# actions before executions: /executions/stop is also an address of the form /executions/ID
for module in (actions, executions, verbs, jobs, tasks_of_executions, subscriptions, deliveries, queue):
    api.add_router("", module.router)
problems.register(api)


def _without_bare_errors(view: Callable[..., Any]) -> Callable[..., Any]:
    """Ninja answers a method that an address does not have with plain text; make it a problem, too."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        response = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        allow = response["Allow"]
        detail = f"the address takes {allow}, and not {request.method}"
        return problems.answer(request, problems.Problem(405, "Method not allowed", detail, {"Allow": allow}))

    return answer


def urls() -> tuple[list[Any], str, str]:
    """The addresses of the API, for urls.py."""
    patterns, app, namespace = api.urls
    addresses = [one for one in patterns if isinstance(one, URLPattern)]
    for one in addresses:
        one.callback = _without_bare_errors(one.callback)
    return addresses, app, namespace


def unknown_path(request: HttpRequest, path: str) -> HttpResponse:
    """Answer an address that the API does not have, in the shape of its other errors."""
    problem = problems.Problem(404, "Not found", "the API has no such address; /api/v1/docs lists those it has")
    return problems.answer(request, problem)
