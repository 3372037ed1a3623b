"""A server that answers and refuses the connection is not called down, and workers wait for it all the same."""

from collections.abc import Iterator

import pytest
from django.db import connection

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown, DatabaseRefused, PoolerRefused
from harbor_refresh.executions.management.output import Failed, errors_in_one_line


@pytest.fixture
def parameters(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    connection.close()
    with pytest.MonkeyPatch.context() as patch:
        yield patch
        connection.close()


def connect() -> None:
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@pytest.mark.parametrize(("name", "value"), [("USER", "stranger"), ("NAME", "nowhere")])
def test_an_account_or_a_database_that_does_not_exist_is_a_refusal(
    parameters: pytest.MonkeyPatch, name: str, value: str
) -> None:
    parameters.setitem(connection.settings_dict, name, value)
    with pytest.raises(DatabaseRefused, match=f'"{value}" does not exist'), absence_translated():
        connect()
    assert issubclass(DatabaseRefused, DatabaseDown)


def test_a_command_says_what_to_type(parameters: pytest.MonkeyPatch) -> None:
    parameters.setitem(connection.settings_dict, "USER", "stranger")
    with pytest.raises(Failed) as failed, errors_in_one_line():
        connect()
    assert str(failed.value).endswith(
        "The database answers, and refuses this program. `manage.py harbor check` says what to do."
    )
    assert "is down" not in str(failed.value)


def test_a_server_that_is_not_there_is_still_down(parameters: pytest.MonkeyPatch) -> None:
    parameters.setitem(connection.settings_dict, "PORT", "1")
    with pytest.raises(DatabaseDown) as down, absence_translated():
        connect()
    assert type(down.value) is DatabaseDown


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('FATAL:  password authentication failed for user "x"', DatabaseRefused),
        ('FATAL:  no pg_hba.conf entry for host "1.2.3.4", user "x"', DatabaseRefused),
        ("FATAL:  SASL authentication failed", DatabaseRefused),
        ("fe_sendauth: no password supplied", DatabaseRefused),
        ("FATAL:  no such user", DatabaseRefused),
        ("server does not support SSL, but SSL was required", DatabaseRefused),
        ("FATAL:  unsupported startup parameter: options", PoolerRefused),
        ("connection refused", DatabaseDown),
        ("FATAL:  the database system is starting up", DatabaseDown),
        ("FATAL:  sorry, too many clients already", DatabaseDown),
    ],
)
def test_the_words_of_a_server(text: str, error: type[DatabaseDown]) -> None:
    from django.db import OperationalError

    with pytest.raises(DatabaseDown) as raised, absence_translated():
        raise OperationalError(f"connection failed: {text}")
    assert type(raised.value) is error
