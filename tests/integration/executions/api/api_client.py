"""A program that uses the API with a token."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from django.test import Client

from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.api.access import Scope

V1 = "/api/v1"


def token(*scopes: Scope, name: str = "", **more: Any) -> str:
    allowed = {scope.value: scope in scopes for scope in Scope}
    return api_tokens.make(name or "-".join(scopes), **allowed, **more)[1]


@dataclass
class Program:
    """What it sends, and the JSON of what it gets, whose status must be the one that is expected."""

    token: str = ""
    client: Client = field(default_factory=Client)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        sent = {"Authorization": f"Bearer {self.token}", **headers} if self.token else headers
        raw = body if isinstance(body, str | bytes) else "" if body is None else json.dumps(body)
        return self.client.generic(method, V1 + path, raw, content_type="application/json", headers=sent)

    def get(self, path: str, status: int = 200) -> Any:
        return answered(self.send("GET", path), status)

    def post(self, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        return answered(self.send("POST", path, body, **headers), status)

    def patch(self, path: str, body: Any, status: int = 200) -> Any:
        return answered(self.send("PATCH", path, body), status)

    def delete(self, path: str, status: int = 204) -> Any:
        return answered(self.send("DELETE", path), status)


def answered(response: HttpResponse, status: int) -> Any:
    assert response.status_code == status, (response.status_code, response.content[:500])
    if status >= 400:
        assert response["Content-Type"] == "application/problem+json"
    return json.loads(response.content) if response.content else None
