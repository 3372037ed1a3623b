from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from harbor_refresh import client as module
from harbor_refresh.client import Client, NotSent, Report
from tests.conftest import fresh_database
from tests.integration.service.client.recorder import Recorder, recorder
from tests.integration.service.client.web import Web


@pytest.fixture(scope="module")
def web_of_module(
    template: str, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Web]:
    """One web process and one database for all tests of a file, because a start takes seconds."""
    with fresh_database(template, django_db_blocker) as name:
        web = Web(name, tmp_path_factory.mktemp("web"))
        web.start()
        yield web
        web.kill()


@pytest.fixture
def web(web_of_module: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    """The service, which runs. The shell finds its address and its token in the environment."""
    monkeypatch.setenv("HARBOR_REFRESH_URL", web_of_module.url)
    monkeypatch.setenv("HARBOR_REFRESH_TOKEN", web_of_module.token)
    monkeypatch.delenv("HARBOR_REFRESH_TOKEN_FILE", raising=False)
    return web_of_module


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recorder() as recorded:
        yield recorded


class Refusals(list[tuple[Report, str]]):
    """What `on_refused` was called with."""

    def __call__(self, report: Report, reason: str) -> None:
        self.append((report, reason))


@pytest.fixture
def refusals() -> Refusals:
    return Refusals()


Make = Callable[..., Client]


@pytest.fixture
def make(server: Recorder, refusals: Refusals, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make a client of the recorder that does not wait long. It is closed after the test."""
    monkeypatch.setattr(module, "LINGER", 0.0)
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.02)
    clients: list[Client] = []

    def make(**more: Any) -> Client:
        usual = {"url": server.url, "token": "hr_a-token", "on_refused": refusals}
        client = Client(**{**usual, **more})
        clients.append(client)
        return client

    yield make
    for one in clients:
        with suppress(NotSent):
            one.close(timeout=0)
