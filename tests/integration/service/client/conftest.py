from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests.conftest import fresh_database
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
    for name in ("HARBOR_REFRESH_TOKEN_FILE", "HARBOR_REFRESH_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    return web_of_module


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"
