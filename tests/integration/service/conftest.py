from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from harbor_refresh.executions.api.access import Scope
from tests.conftest import fresh_database
from tests.integration.executions.api.api_client import token
from tests.integration.service.web import Web, serving


@pytest.fixture(scope="module")
def web(
    template: str, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Web]:
    """The service on a database of its own, shared by the tests of a module. Its tokens may ask at any rate."""
    log = tmp_path_factory.mktemp("web") / "gunicorn.log"
    with fresh_database(template, django_db_blocker) as name:
        everything = token(*Scope)
        with serving(name, log, REFRESH_API_REQUESTS_PER_MINUTE="0") as url:
            yield Web(url, log, everything)
