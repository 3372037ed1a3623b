"""The HTTP API of the service: the routers of both apps under one address, with one description."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from executions.api import deliveries, events, executions, problems, reports, subscriptions
from executions.api import tasks as tasks_of_executions
from executions.api.parsing import BoundedParser
from tasks.api import actions, queue, verbs

PROBLEM = "#/components/schemas/ProblemDetails"


class Api(NinjaAPI):
    def get_openapi_schema(self, **where: Any) -> OpenAPISchema:
        """Describe problems by their own media type, which Ninja does not know."""
        schema = super().get_openapi_schema(**where)
        for path in schema["paths"].values():
            for operation in path.values():
                for response in operation["responses"].values():
                    _name_media_type(response)
        return schema


def _name_media_type(response: dict[str, Any]) -> None:
    content = response.get("content", {})
    if content.get("application/json", {}).get("schema", {}).get("$ref") == PROBLEM:
        response["content"] = {"application/problem+json": content["application/json"]}


api = Api(
    title="Harbor Refresh",
    version="1",
    description="Create executions, report the status of their tasks, and ask how they are.",
    parser=BoundedParser(),
    urls_namespace="api",
)
# actions before executions: /executions/stop is also an address of the form /executions/ID
for router in (
    actions.router,
    executions.router,
    events.router,
    verbs.router,
    tasks_of_executions.router,
    reports.router,
):
    api.add_router("", router)
api.add_router("", subscriptions.router)
api.add_router("", deliveries.router)
api.add_router("", queue.router)
problems.register(api)


def unknown_path(request: HttpRequest, path: str) -> HttpResponse:
    """Answer an address that the API does not have, in the shape of its other errors."""
    problem = problems.Problem(404, "Not found", "the API has no such address; /api/v1/docs lists those it has")
    return problems.answer(request, problem)
