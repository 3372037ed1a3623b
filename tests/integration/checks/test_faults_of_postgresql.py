"""Faults of PostgreSQL, put there on purpose: the doctor names each, and what it says to type ends it."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from psycopg import IsolationLevel

from harbor_refresh.local.ports import choose_port
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import examine
from tests import servers
from tests.integration.checks.examined import CHECKS, E, W, found, problems, reconnect, typed
from tests.integration.concurrency import statement_held_open

pytestmark = pytest.mark.usefixtures("database")


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def set_for_database(database: str, what: str) -> None:
    sql(f"ALTER DATABASE {database} SET {what}")
    reconnect()


@pytest.fixture
def other_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "PORT", str(choose_port()))
    yield
    connection.close()


def test_a_database_that_is_down(other_port: None) -> None:
    ((level, what),) = found("database.reachable")
    assert (level, what.split(". ")[0]) == (E, "PostgreSQL is down")


def test_an_account_that_does_not_exist_is_not_called_down(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "USER", "stranger")
    ((level, what),) = found("database.reachable")
    assert level == E
    assert what.startswith("PostgreSQL answers and refuses this program. ")
    assert 'role "stranger" does not exist' in what
    connection.close()


def test_a_database_that_takes_no_writes(database: str) -> None:
    set_for_database(database, "default_transaction_read_only = on")
    assert found("database.writable") == [(E, "Transactions are read-only here, so nothing can be written.")]


def test_a_role_that_may_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sql("CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    owner = connection.settings_dict["USER"]
    try:
        monkeypatch.setitem(connection.settings_dict, "USER", "reader")
        reconnect()
        told = "The role reader may not change the table task, so no report can be stored."
        assert found("database.writable") == [(E, told)]
    finally:
        connection.settings_dict["USER"] = owner
        reconnect()
        sql("DROP OWNED BY reader; DROP ROLE reader")


def test_transactions_that_do_not_see_what_others_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", IsolationLevel.REPEATABLE_READ)
    reconnect()
    ((level, what),) = found("database.isolation")
    assert (level, what.split(". ")[0]) == (E, "Transactions are REPEATABLE READ here")
    connection.settings_dict["OPTIONS"]["isolation_level"] = IsolationLevel.READ_COMMITTED
    reconnect()
    assert found("database.isolation") == []


def test_a_session_without_timeouts() -> None:
    sql("SET lock_timeout = 0")
    sql("SET idle_in_transaction_session_timeout = '1h'")
    assert found("database.timeouts") == [
        (
            E,
            "Transactions wait indefinitely for a locked row (lock_timeout), so one stopped process can hold up "
            "every report.",
        ),
        (E, "A process that hangs in a transaction keeps its locks 3600 s (idle_in_transaction_session_timeout)."),
    ]


def test_a_role_with_the_timeouts_that_the_doctor_types_has_them(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "options", "")
    reconnect()
    assert len(found("database.timeouts")) == 2
    typed("database.timeouts")
    reconnect()
    assert found("database.timeouts") == []


def test_another_role_whose_transactions_this_one_cannot_see(role: str) -> None:
    """The fixture has a session as the superuser."""
    superuser = servers.postgres.url_for(connection.settings_dict["NAME"])
    ((level, what),) = found("database.roles")
    assert (level, what.split(" uses")[0]) == (W, "postgres")
    (problem,) = problems("database.roles")
    with psycopg.connect(superuser, autocommit=True) as server:
        server.execute(problem.hint.encode())
    assert found("database.roles") == []


def test_migrations_that_are_not_applied() -> None:
    sql("DELETE FROM django_migrations WHERE app = 'harbor_tasks'")
    ((level, what),) = found("tables.migrations")
    assert (level, "not applied to the database: harbor_tasks." in what) == (E, True)


def test_a_table_that_cannot_be_read() -> None:
    """The checks that look at the state would find nothing."""
    chosen = [one for one in CHECKS if one.id in ("database.reachable", "tables.readable", "status.deliveries")]
    with statement_held_open("LOCK TABLE execution_delivery"):
        results = list(examine(chosen, Facts()))
    assert [one.verdict for one in results] == ["sound", "error", "not made"]
    assert [one.verdict for one in examine(chosen, Facts())] == ["sound"] * 3


def test_a_check_that_fails_is_a_problem_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sql("ALTER TABLE execution_watermark RENAME TO elsewhere")
    ((level, what),) = found("status.drift")
    assert (level, what.split(":")[0]) == (E, "This could not be looked at. ProgrammingError")
