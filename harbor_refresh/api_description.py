"""The API's description: what Ninja derives from the code, with scopes and the media type of problems.

`/api/v1/openapi.json` serves it, and `/api/v1/docs` shows it. A test compares the tables of docs/api.md with it.
"""

from typing import Any

from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

PROBLEM = "#/components/schemas/ProblemDetails"
JSON, PROBLEM_JSON = "application/json", "application/problem+json"
#: What each error of the API means, where the operation itself does not say more.
ERRORS = {
    400: "It cannot be used; `detail` says what.",
    401: "There is no token, or it is unknown, revoked or expired.",
    403: "The token lacks the scope; or the service is attached to a Harbor, which does this itself.",
    404: "There is no such row.",
    409: "Its state does not allow this; `detail` says why.",
    410: "It was deleted; do not try again.",
    412: "It has not ended.",
    413: "The body is too large, or holds too many values; `detail` says which.",
    422: "The request is not as described; `errors` says where.",
    429: "The token has used up its requests of this minute. `Retry-After` says how long to wait.",
    503: "PostgreSQL or Redis is away, or a row stays locked. Try again after `Retry-After` seconds.",
}


class Description(OpenAPISchema):
    """Ninja's schema. Everything that this class adds is taken from the operations themselves."""

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details: dict[str, Any] = super().operation_details(operation)
        scopes = sorted({one.scope.value for one in operation.auth_callbacks if hasattr(one, "scope")})
        if scopes:
            needs = f"Needs the scope `{scopes[0]}`."
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
        for one in operation.auth_callbacks or ():
            if not hasattr(one, "openapi_security_schema"):
                continue
            scheme = dict(one.openapi_security_schema)
            name = scheme.pop("name", type(one).__name__)
            if header := getattr(one, "param_name", None):  # of a key in a header; other schemes have no name
                scheme["name"] = header
            self.securitySchemes[name] = scheme
            found.append({name: [one.scope.value] if hasattr(one, "scope") else []})
        return found or None
