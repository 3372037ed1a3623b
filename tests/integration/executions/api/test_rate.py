"""A token that makes too many requests is told when to go on."""

import pytest
from django.core.cache import cache
from pytest_django import Settings

from harbor_refresh.executions.api import access
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.news import signals
from tests.integration.executions.api.api_client import Program, answered, token


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr(access, "_cache_rests_until", 0.0)


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


def test_no_limit_counts_nothing(program: Program, settings: Settings) -> None:
    settings.REFRESH_API_REQUESTS_PER_MINUTE = 0
    program.get("/executions")
    assert not cache._cache  # type: ignore[attr-defined]


def test_a_cache_that_is_away_limits_nothing_and_is_not_asked_for_a_while(
    program: Program, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REFRESH_API_REQUESTS_PER_MINUTE = 1
    asked: list[str] = []
    told: list[str] = []

    def fail(key: str) -> int:
        asked.append(key)
        raise ConnectionError("refused")

    def listen(error: str, **_: object) -> None:
        told.append(error)

    monkeypatch.setattr(cache, "incr", fail)
    signals.rate_unknown.connect(listen)
    for _ in range(3):
        program.get("/executions")
    assert (len(asked), told) == (1, ["ConnectionError: refused"])
