"""A token that makes too many requests is told when to go on."""

from collections import Counter

import pytest
from pytest_django import Settings

from harbor_refresh.executions.api import access
from harbor_refresh.executions.api.access import Scope
from tests.integration.executions.api.api_client import Program, answered, token


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_made", Counter())


def test_a_token_that_has_used_up_its_minute_is_told_when_the_next_begins(
    program: Program, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REFRESH_API_REQUESTS_PER_MINUTE = 2
    now = 1_000_000_040.0
    monkeypatch.setattr(access.time, "time", lambda: now)
    other = Program(token(Scope.READ))
    for _ in range(2):
        program.get("/executions")
    refused = program.send("GET", "/executions")
    assert refused["Retry-After"] == "40"
    assert "the next minute begins in 40 s" in answered(refused, 429)["detail"]
    other.get("/executions")
    now += 40
    program.get("/executions")


def test_without_a_limit_no_request_is_refused(program: Program, settings: Settings) -> None:
    settings.REFRESH_API_REQUESTS_PER_MINUTE = 0
    for _ in range(3):
        program.get("/executions")
