"""Migrations on a database of Harbor's: its own schema stays to the letter, and its own work on it goes on."""

from collections.abc import Iterator

import psycopg
import pytest
from django.core.management.base import CommandError
from django.db import connection
from pytest_django import DjangoDbBlocker, Settings

from harbor_refresh.executions.attached.own_schema import make_schema
from harbor_refresh.executions.lifecycle.rollup import refresh
from tests import servers
from tests.conftest import fresh_database
from tests.harbor.databases import connections_attached, make_harbors_database, manage_attached
from tests.harbor.dump import dump_of_public
from tests.harbor.rows import asked, execution, history, task

HARBOR = "harbor_alone"


@pytest.fixture
def harbor() -> Iterator[str]:
    """A database of Harbor's that none of our programs has seen."""
    make_harbors_database(HARBOR)
    yield HARBOR
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"DROP DATABASE {HARBOR} WITH (FORCE)".encode())


def ours(database: str) -> dict[str, int]:
    """How many tables each schema has."""
    with psycopg.connect(servers.postgres.url_for(database)) as connection:
        return dict(
            connection.execute(
                "SELECT schemaname, count(*) FROM pg_tables WHERE schemaname !~ '^(pg_|information)' GROUP BY 1"
            ).fetchall()
        )


@pytest.mark.slow
def test_a_migration_and_the_way_back_leave_the_schema_of_harbor_to_the_letter(harbor: str) -> None:
    before = dump_of_public(harbor)
    assert "CREATE TABLE public.execution (" in before
    assert ours(harbor) == {"public": 3}
    done = manage_attached(harbor, "migrate", "--verbosity=0")
    assert (done.returncode, done.stderr) == (0, "")
    assert dump_of_public(harbor) == before
    tables = ours(harbor)
    assert tables["public"] == 3
    assert tables["harbor_refresh"] > 20
    done = manage_attached(harbor, "migrate", "harbor_executions", "zero", "--verbosity=0")
    assert (done.returncode, done.stderr) == (0, "")
    assert dump_of_public(harbor) == before


def test_no_table_of_ours_depends_on_one_of_harbors(attached: str) -> None:
    """A foreign key, a view or a function that did would be in the way of Harbor's deletes and migrations."""
    found = asked(
        "SELECT d.classid::regclass, d.objid, d.refobjid::regclass"
        " FROM pg_depend d"
        " JOIN pg_class harbors ON harbors.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass"
        " LEFT JOIN pg_class c ON c.oid = d.objid AND d.classid = 'pg_class'::regclass"
        " LEFT JOIN pg_constraint f ON f.oid = d.objid AND d.classid = 'pg_constraint'::regclass"
        " WHERE harbors.relnamespace = 'public'::regnamespace AND harbors.relkind = 'r' AND d.deptype = 'n'"
        " AND coalesce(c.relnamespace, f.connamespace) IS DISTINCT FROM 'public'::regnamespace"
    )
    assert found == []


def test_harbor_alters_the_type_of_a_column_that_we_read(attached: str) -> None:
    of = execution("Running")
    task(of, "Success")
    assert refresh([of]).changed == 1
    asked("ALTER TABLE task ALTER COLUMN status_revision TYPE bigint")
    asked("ALTER TABLE task ALTER COLUMN end_time TYPE timestamp(0)")
    asked("ALTER TABLE execution ALTER COLUMN status TYPE varchar(32)")
    task(of, "Running")
    assert refresh([of]).changed == 1
    assert history(of) == [(1, "Running", "Success"), (2, "Success", "Running")]


def test_harbors_mass_delete_is_refused_by_no_row_of_ours(attached: str) -> None:
    ids = [execution("Running") for _ in range(20)]
    for of in ids:
        task(of, "Success")
    assert refresh(ids).changed == 20
    asked("INSERT INTO execution_quarantine (execution_id, reason, attempts) SELECT id, 'x', 5 FROM execution")
    asked("DELETE FROM task WHERE status_code = 3")
    asked("DELETE FROM execution WHERE id IN (SELECT id FROM execution)")
    assert asked("SELECT count(*) FROM execution_status_change") == [(20,)]


@pytest.fixture
def attached_here(settings: Settings) -> Iterator[None]:
    settings.REFRESH_ATTACH = "harbor"
    with connections_attached():
        yield


@pytest.mark.usefixtures("attached_here")
def test_a_database_that_is_no_harbors_is_refused(template: str, django_db_blocker: DjangoDbBlocker) -> None:
    with fresh_database("template0", django_db_blocker) as name:
        with pytest.raises(CommandError, match="no tables execution and task in its schema public"):
            make_schema()
        assert ours(name) == {}
    with fresh_database(template, django_db_blocker) as name:
        with pytest.raises(CommandError, match="was migrated without REFRESH_ATTACH"):
            make_schema()
        assert "harbor_refresh" not in ours(name)


def test_a_search_path_that_would_make_our_tables_among_harbors_is_refused(
    harbor: str, settings: Settings, django_db_blocker: DjangoDbBlocker
) -> None:
    """A pooler takes no options of a connection."""
    settings.REFRESH_ATTACH = "harbor"
    with fresh_database(harbor, django_db_blocker) as name:
        typed = "ALTER ROLE postgres SET search_path = harbor_refresh,public;"
        with pytest.raises(CommandError, match=typed):
            make_schema()
        assert ours(name) == {"public": 3}
        with psycopg.connect(servers.postgres.url_for(name), autocommit=True) as server:
            server.execute(typed.replace("SET", f"IN DATABASE {name} SET").encode())
        connection.close()
        make_schema()
