"""The HTTP API of the service: the routers of both apps under one address, with one description.

`/api/v1/openapi.json` serves the description, `/api/v1/docs` shows it, and docs/reference/api.md is made from it.
"""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.docs import Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from harbor_refresh.executions.api import executions, problems, subscriptions
from harbor_refresh.executions.api import tasks as tasks_of_executions
from harbor_refresh.executions.text import refuse_nesting
from harbor_refresh.tasks.api import actions, jobs, queue, verbs

#: A value may take 3 bytes of a body and 240 bytes of memory. Each but the outermost follows one of these marks.
MAX_MARKS, MARKS = 500_000, ",[{"
#: Pydantic makes all errors of a request or none, and each takes a kilobyte.
MAX_NAMED = 50_000
PROBLEM = "#/components/schemas/ProblemDetails"
JSON, PROBLEM_JSON = "application/json", "application/problem+json"
#: What each error of the API means, where the operation itself does not say more.
ERRORS = {
    400: "The request cannot be used; `detail` says why.",
    401: "There is no token, or it is unknown, revoked or expired.",
    403: "The token lacks the scope, or the service is attached to a Harbor, which does this itself.",
    404: "There is no such row.",
    409: "The state of the row does not allow this; `detail` says why.",
    410: "The row was deleted; do not try again.",
    412: "The execution has not ended.",
    413: "The body is too large, or has too many commas, `[` and `{`, also in texts; `detail` says which.",
    422: "The request does not match the description; `errors` says where.",
    429: "The token has used up its requests for this minute. `Retry-After` says how long to wait.",
    503: "PostgreSQL or Redis is down, or a row stays locked. Try again after `Retry-After` seconds.",
}


class BoundedParser(Parser):
    """Parse a body that is bounded in size (DATA_UPLOAD_MAX_MEMORY_SIZE), in values and in nesting. Ninja turns an
    error here into an HttpError 400, whose cause is told in the answer."""

    def parse_body(self, request: HttpRequest) -> Any:
        text = request.body.decode(json.detect_encoding(request.body), "surrogatepass")
        if sum(map(text.count, MARKS)) > MAX_MARKS:
            most = f"a body takes at most {MAX_MARKS:,} commas, [ and {{, also in texts"
            raise RequestDataTooBig(f"{most}: send it in parts")
        data = json.loads(text, parse_constant=_refuse)
        refuse_nesting(data)
        return data


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


class Description(OpenAPISchema):
    """Ninja's schema. Everything that this class adds is taken from the operations themselves."""

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details: dict[str, Any] = super().operation_details(operation)
        auth: Any = operation.auth_callbacks[-1]
        needs = f"Needs the scope `{auth.scope}`."
        details["description"] = f"{details.get('description', '')}\n\n{needs}".strip()
        for parameter in details["parameters"]:
            # Ninja copies the list of a schema, and OpenAPI takes one value or a map here
            if examples := parameter.pop("examples", None):
                parameter["example"] = examples[0]
        if "requestBody" in details:
            for status in (400, 413):
                details["responses"].setdefault(status, {"content": {JSON: {"schema": {"$ref": PROBLEM}}}})
        for status, response in details["responses"].items():
            content = response.get("content", {})
            if content.get(JSON, {}).get("schema", {}).get("$ref") == PROBLEM:
                response["description"] = ERRORS[int(status)]
                response["content"] = {PROBLEM_JSON: content[JSON]}
        details["responses"] = dict(sorted(details["responses"].items()))
        return details


class Renderer(BaseRenderer):
    """Write answers with Pydantic, in a tenth of the time of Django's encoder, and times to the microsecond."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        try:
            return to_json(data)
        except PydanticSerializationError:  # half a surrogate pair of Harbor's JSON, which UTF-8 cannot hold
            return json.dumps(data, default=to_jsonable_python).encode()


class Page(Swagger):
    """The page of the API, with Ninja's files from this service. Ninja itself would take them from another site,
    because it is no installed app here (settings/base.py)."""

    template_cdn = str(Path(__file__).with_name("replaced_templates") / "ninja/swagger.html")


class Api(NinjaAPI):
    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Refuse a request with so many errors that to name them would take more memory than the request."""
        count = sum(one.pydantic_validation_error.error_count() for one in error_contexts)
        if count > MAX_NAMED:
            told = f"{count:,} values are not as described, too many to name one"
            raise problems.Problem(422, problems.NOT_AS_DESCRIBED, told)
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
for module in (actions, executions, verbs, jobs, tasks_of_executions, subscriptions, queue):
    api.add_router("", module.router)
for kind in problems.MAKERS:
    api.add_exception_handler(kind, problems.answer)


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


#: The addresses of the API.
urls: Any = api.urls
for address in urls[0]:
    address.callback = _without_bare_errors(address.callback)


def unknown_path(request: HttpRequest, path: str = "") -> HttpResponse:
    """Answer an address that the API does not have, in the shape of its other errors."""
    problem = problems.Problem(404, "Not found", "the API has no such address; /api/v1/docs lists those it has")
    return problems.answer(request, problem)
