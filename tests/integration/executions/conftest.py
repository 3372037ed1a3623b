"""Tests of `executions` use PostgreSQL alone: its news has no listener but the test, and Redis is not started."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.news.after_commit import Member, changes_written, executions_touched
from tests.integration.executions.hook_requests import SECRET


@pytest.fixture(scope="session", autouse=True)
def redis_server() -> None:
    """Start none, unlike the fixture of this name in tests/conftest.py."""


@pytest.fixture
def redis() -> None:
    pytest.fail("a test of executions/ uses PostgreSQL alone")


@pytest.fixture(autouse=True)
def news_has_no_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listeners of `tasks` would mark executions and stop jobs, in Redis."""
    for signal in (changes_written, executions_touched):
        monkeypatch.setattr(signal, "receivers", [])


@pytest.fixture
def changed(news_has_no_listener: None) -> Iterator[list[Member]]:
    """The executions of which the news told that they changed."""
    told: list[Member] = []

    def listen(members: list[Member], **_: Any) -> None:
        told.extend(members)

    executions_touched.connect(listen)
    yield told
    executions_touched.disconnect(listen)


@pytest.fixture
def secret(settings: Settings) -> None:
    settings.REFRESH_HARBOR_SECRET = SECRET
