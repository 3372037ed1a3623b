"""The API's description: what Ninja derives from the code, with scopes and the media type of problems.

`/api/v1/openapi.json` serves it, `/api/v1/docs` shows it, and docs/reference/api.md is made from it.
"""

from typing import Any

from django.conf import settings
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from harbor_refresh.executions import pacing
from harbor_refresh.executions.api.idempotency import MAX_KEY
from harbor_refresh.executions.api.pages import MAX_ITEMS, PageIn
from harbor_refresh.executions.api.parsing import MAX_VALUES
from harbor_refresh.executions.api.schemas import MAX_REPORTS, MAX_TASKS
from harbor_refresh.executions.conf import DECLARED
from harbor_refresh.executions.queries.filters import MAX_ATTRIBUTES
from harbor_refresh.executions.queries.progress import SECONDS_OF_A_STREAM
from harbor_refresh.executions.text import MAX_DEPTH, MAX_JSON

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
    413: "The body is too large, or holds too many values; `detail` says which.",
    422: "The request does not match the description; `errors` says where.",
    429: "The token has used up its requests for this minute. `Retry-After` says how long to wait.",
    503: "PostgreSQL or Redis is away, or a row stays locked. Try again after `Retry-After` seconds.",
}
#: What a request may have at most, and the status of the answer to more.
LIMITS = (
    ("address with its query, and headers", "262,144 bytes", "431"),
    ("body", f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1024**2} MiB", "413"),
    ("values in a body; an empty list or object counts as two", f"{MAX_VALUES:,}", "413"),
    ("nested levels of a body", f"{MAX_DEPTH}", "400"),
    ("`extra_attrs` of a row", f"{MAX_JSON:,} bytes", "400"),
    ("tasks of a request", f"{MAX_TASKS:,}", "422"),
    ("reports of a request", f"{MAX_REPORTS:,}", "422"),
    ("items of a page", f"{MAX_ITEMS:,} (default: {PageIn.model_fields['limit'].default})", "422"),
    ("`attribute` in a list", f"{MAX_ATTRIBUTES}", "422"),
    ("`Idempotency-Key`", f"{MAX_KEY} visible ASCII characters", "422"),
    ("requests of a token in a minute", f"{DECLARED['requests_per_minute'].default:,} by default", "429"),
    ("event streams of a web process", f"{pacing.STREAMS}", "503"),
    ("duration of an event stream", f"{SECONDS_OF_A_STREAM:g} s", "the stream ends: open another"),
)


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

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        """Name each scheme and the scopes that the operation needs, which Ninja leaves empty."""
        found = []
        callbacks: Any = operation.auth_callbacks
        for one in callbacks:
            scheme = dict(one.openapi_security_schema)
            name = scheme.pop("name", type(one).__name__)
            if header := getattr(one, "param_name", None):  # of a key in a header; other schemes have no name
                scheme["name"] = header
            self.securitySchemes[name] = scheme
            found.append({name: [one.scope.value]})
        return found or None
