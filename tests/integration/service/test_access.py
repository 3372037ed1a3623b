"""Every operation of the API, with every kind of token: the authorization matrix."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import ApiToken
from harbor_refresh.web.api import api
from tests.integration.executions.api.api_client import V1, Program, token

SCOPES = {
    ("POST", "/executions"): Scope.REPORT,
    ("GET", "/executions"): Scope.READ,
    ("GET", "/executions/{execution_id}"): Scope.READ,
    ("PATCH", "/executions/{execution_id}"): Scope.REPORT,
    ("DELETE", "/executions/{execution_id}"): Scope.MANAGE,
    ("GET", "/executions/{execution_id}/history"): Scope.READ,
    ("GET", "/executions/{execution_id}/tasks"): Scope.READ,
    ("GET", "/executions/{execution_id}/jobs"): Scope.READ,
    ("GET", "/executions/{execution_id}/results"): Scope.READ,
    ("POST", "/executions/{execution_id}/tasks"): Scope.REPORT,
    ("POST", "/executions/{execution_id}/refresh"): Scope.MANAGE,
    ("POST", "/executions/{execution_id}/finish"): Scope.MANAGE,
    ("POST", "/executions/{execution_id}/stop"): Scope.MANAGE,
    ("POST", "/executions/{execution_id}/retry"): Scope.MANAGE,
    ("POST", "/executions/{execution_id}/resume"): Scope.MANAGE,
    ("GET", "/tasks/{task_id}"): Scope.READ,
    ("PATCH", "/tasks/{task_id}"): Scope.REPORT,
    ("GET", "/tasks/{task_id}/job"): Scope.READ,
    ("POST", "/tasks/{task_id}/report"): Scope.REPORT,
    ("POST", "/tasks/{task_id}/stop"): Scope.MANAGE,
    ("POST", "/tasks/{task_id}/retry"): Scope.MANAGE,
    ("POST", "/reports"): Scope.REPORT,
    ("GET", "/queue"): Scope.READ,
    ("POST", "/queue/pause"): Scope.MANAGE,
    ("POST", "/queue/resume"): Scope.MANAGE,
    ("POST", "/subscriptions"): Scope.MANAGE,
    ("GET", "/subscriptions"): Scope.READ,
    ("GET", "/subscriptions/{subscription_id}"): Scope.READ,
    ("PATCH", "/subscriptions/{subscription_id}"): Scope.MANAGE,
    ("DELETE", "/subscriptions/{subscription_id}"): Scope.MANAGE,
    ("POST", "/subscriptions/{subscription_id}/test"): Scope.MANAGE,
    ("POST", "/subscriptions/{subscription_id}/rotate-secret"): Scope.MANAGE,
    ("GET", "/deliveries"): Scope.READ,
    ("POST", "/deliveries/resend"): Scope.MANAGE,
    ("POST", "/deliveries/{delivery_id}/resend"): Scope.MANAGE,
    ("POST", "/executions/stop"): Scope.MANAGE,
    ("POST", "/executions/retry"): Scope.MANAGE,
    ("POST", "/executions/resume"): Scope.MANAGE,
    ("POST", "/executions/refresh"): Scope.MANAGE,
    ("POST", "/executions/delete"): Scope.MANAGE,
}


def operations() -> list[tuple[str, str]]:
    paths = api.get_openapi_schema(path_prefix="")["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def test_each_operation_is_in_the_matrix() -> None:
    assert sorted(operations()) == sorted(SCOPES)


def status_of(program: Program, method: str, path: str) -> int:
    body = {} if method in ("POST", "PATCH", "PUT") else None
    return program.send(method, re.sub(r"{\w+}", "7777", path), body).status_code


def test_each_operation_asks_for_its_scope(database: str, redis: object) -> None:
    """The right token gets further than access: to a refusal, because nothing is there and the body is empty."""
    refused = {"no token": Program(), "no token of ours": Program("hr_" + "x" * 43)}
    expires = {"expires_at": timezone.now() - timedelta(seconds=1)}
    refused |= {"expired": Program(token(*Scope, name="expired", **expires))}
    refused |= {"revoked": Program(token(*Scope, name="revoked"))}
    api_tokens.revoke(ApiToken.objects.get(name="revoked").pk)
    right = {scope: Program(token(scope)) for scope in Scope}
    wrong = {scope: Program(token(*({*Scope} - {scope}), name=f"not {scope}")) for scope in Scope}
    for (method, path), scope in SCOPES.items():
        found = {name: status_of(program, method, path) for name, program in refused.items()}
        assert found == dict.fromkeys(refused, 401), (method, path)
        assert status_of(wrong[scope], method, path) == 403, (method, path)
        assert status_of(right[scope], method, path) in (200, 400, 404, 422), (method, path)


@pytest.mark.parametrize("header", ["Basic eDp5", "Bearer", "bearer ", "Token x", "Bearer \u00e9"])
def test_another_authorization_is_no_token(database: str, header: str) -> None:
    assert Program().send("GET", "/queue", Authorization=header).status_code == 401


def test_a_refusal_names_no_token(database: str) -> None:
    secret = token(Scope.READ)
    answer = Program(secret).post("/reports", {}, 403)
    assert answer["detail"] == "the token lacks the scope `report`"
    assert secret not in str(answer)


@pytest.mark.parametrize("path", ["/", "/nothing"])
def test_an_address_that_the_api_does_not_have_is_a_problem(database: str, path: str) -> None:
    for method in ("GET", "POST"):
        answer = Program().send(method, path)
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_the_description_needs_no_token(database: str) -> None:
    for path in ("/openapi.json", "/docs"):
        assert Program().client.get(f"{V1}{path}").status_code == 200
