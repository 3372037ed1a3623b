"""deploy/attach/rights.sql and its way back, on a managed PostgreSQL, whose administrators are no superusers."""

from collections.abc import Iterator
from importlib.resources import files

import psycopg
import pytest

from tests import servers
from tests.harbor.databases import make_harbors_database
from tests.harbor.managed import ADMINISTRATOR, managed
from tests.harbor.restricted import ROLE, run_file

NAME = "harbor_of_a_cloud"
MISSING = files("harbor_refresh.management.attach").joinpath("sql", "rights.sql").read_text(encoding="utf-8")
#: Who may do what, and which roles are there. A right that was given and taken back is written as none.
RIGHTS = """
    SELECT 'table', relname, acl::text
    FROM pg_class, unnest(coalesce(relacl, acldefault('r', relowner))) acl
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
    UNION ALL
    SELECT 'column', attname, acl::text
    FROM pg_attribute, unnest(attacl) acl
    WHERE attrelid = 'public.execution'::regclass
    UNION ALL
    SELECT 'schema', nspname, acl::text FROM pg_namespace, unnest(nspacl) acl WHERE nspname !~ '^pg_(temp|toast)'
    UNION ALL
    SELECT 'member', m.roleid::regrole::text, m.member::regrole::text FROM pg_auth_members m
    UNION ALL
    SELECT 'role', rolname, NULL FROM pg_roles
"""


@pytest.fixture
def service() -> Iterator[psycopg.Connection]:
    """The cloud service itself, in a database with Harbor's tables."""
    make_harbors_database(NAME)
    with psycopg.connect(servers.postgres.url_for(NAME), autocommit=True) as connection:
        yield connection
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"DROP DATABASE {NAME} WITH (FORCE)".encode())
        server.execute(f"DROP ROLE IF EXISTS {ROLE}".encode())


@pytest.mark.parametrize("may_grant", ["pg_read_all_stats", "pg_monitor"])
def test_an_administrator_who_is_no_superuser_gives_all_rights_and_takes_them_back(
    service: psycopg.Connection, may_grant: str
) -> None:
    with managed(NAME, may_grant) as address, psycopg.connect(address, autocommit=True) as administrator:
        before = set(service.execute(RIGHTS).fetchall())
        run_file("rights.sql", administrator)
        with psycopg.connect(address.replace(f"//{ADMINISTRATOR}@", f"//{ROLE}@"), autocommit=True) as ours:
            assert ours.execute(MISSING.encode(), {"schema": ROLE}).fetchall() == []
            ours.execute("CREATE TABLE made (id bigint)")
            assert ours.execute("SELECT to_regclass('harbor_refresh.made') IS NOT NULL").fetchone() == (True,)
            mine = ours.execute("SELECT schemaname, tablename FROM pg_tables WHERE tableowner = %s", [ROLE])
            assert mine.fetchall() == [(ROLE, "made")]
        run_file("rights_back.sql", administrator)
        assert set(service.execute(RIGHTS).fetchall()) == before


def test_an_administrator_who_may_grant_neither_gives_nothing(service: psycopg.Connection) -> None:
    """Before PostgreSQL 16 there is no such one."""
    if service.info.server_version < 160000:
        pytest.skip("CREATEROLE may grant every role before PostgreSQL 16")
    with managed(NAME, "pg_signal_backend") as address, psycopg.connect(address, autocommit=True) as administrator:
        before = set(service.execute(RIGHTS).fetchall())
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="pg_monitor"):
            run_file("rights.sql", administrator)
        assert set(service.execute(RIGHTS).fetchall()) == before
