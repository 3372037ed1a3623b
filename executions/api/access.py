"""Access: what a caller may do. Each operation of the API names the scope that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.http import HttpRequest
from ninja.security import HttpBearer

from executions.api import rate
from executions.api.problems import Problem, unauthorized
from executions.api_tokens import recognise
from executions.models import ApiToken


class Scope(StrEnum):
    READ = "read"
    REPORT = "report"
    MANAGE = "manage"


@dataclass(frozen=True)
class Caller:
    """The program that made a request. `name` stays the same in all its requests."""

    name: str
    scopes: frozenset[Scope]


def scopes_of(token: ApiToken) -> frozenset[Scope]:
    return frozenset(scope for scope in Scope if getattr(token, f"may_{scope}"))


class _TokenWith(HttpBearer):
    """An API token with a scope, as `Authorization: Bearer TOKEN`."""

    openapi_name = "token"
    openapi_description = "An API token, made in the admin. Each operation names the scope that the token needs."

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        row = recognise(token)
        if row is None:
            raise unauthorized("the token is unknown, revoked or expired")
        rate.count(row.pk)
        caller = Caller(f"token {row.pk}", scopes_of(row))
        if self.scope not in caller.scopes:
            raise Problem(403, "Not allowed", f"the token lacks the scope `{self.scope}`")
        return caller


def may(scope: Scope) -> Callable[[HttpRequest], Any]:
    """The `auth` of an operation that needs this scope."""
    return _tokens[scope]


_tokens = {scope: _TokenWith(scope) for scope in Scope}
