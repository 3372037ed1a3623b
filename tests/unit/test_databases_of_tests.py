"""How the tests make their databases, if PostgreSQL is away."""

import psycopg
import pytest

from harbor_refresh.local.ports import choose_port
from tests import conftest


def test_the_error_of_a_server_that_is_away_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"postgresql://postgres@127.0.0.1:{choose_port()}/postgres"
    monkeypatch.setattr(conftest.servers.postgres, "url_for", lambda name: address)
    monkeypatch.setattr(conftest, "_server", [])
    with pytest.raises(psycopg.OperationalError, match="refused"):
        conftest._administer("SELECT 1")
