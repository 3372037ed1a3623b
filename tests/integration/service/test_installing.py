"""docs/howto/deploy.md: a person who types what stands there installs the service."""

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests import pages, servers
from tests.deploy.conftest import copy_sources
from tests.integration.redis_state import Redis
from tests.terminal import answered, ran

PAGE = pages.read("docs/howto/deploy.md")
STATEMENTS = pages.section(PAGE, "Prepare PostgreSQL and Redis")
SETTINGS = pages.section(PAGE, "Set the required settings")
WITHOUT_CONTAINERS = pages.section(PAGE, "Run the programs without containers")


@contextmanager
def role_of_install() -> Iterator[str]:
    """Run the statements of the page; yield the name of the role and of its database. It is not the name of the
    page, so that several tests may run at once."""
    name = f"refresh_of_install_{os.getpid()}"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        try:
            for one in statements(STATEMENTS, refresh=name):
                server.execute(one)
            yield name
        finally:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            server.execute(f"DROP ROLE IF EXISTS {name}".encode())


def statements(text: str, **names: str) -> list[bytes]:
    """The statements of the one SQL block, with other names in the place of those of the page."""
    block = pages.code(text, "sql")
    for before, name in names.items():
        block = re.sub(rf"\b{before}\b", name, block)
    return [one.encode() for one in block.split(";")[:-1]]


def as_role(name: str, database: str) -> str:
    return servers.postgres.url_for(database).replace("postgres@", f"{name}:PASSWORD@")


def test_the_statements_of_install_make_a_role_that_can_migrate() -> None:
    with role_of_install() as name, psycopg.connect(as_role(name, name)) as mine:
        row = mine.execute("SELECT current_user, pg_has_role('pg_read_all_stats', 'member')").fetchone()
        assert row == (name, True)
        mine.execute("CREATE TABLE made (id int)")


@pytest.mark.slow
def test_a_person_installs_the_service_by_typing_what_the_page_has(redis: Redis, tmp_path: Path) -> None:
    """The addresses and the folder of the secret are those of the test. The doctor misses workers and beat."""
    (exported,), (commands, _) = (pages.codes(text, "sh") for text in (SETTINGS, WITHOUT_CONTAINERS))
    secret = tmp_path / "secret_key"
    secret.write_text(secrets.token_urlsafe(48), encoding="utf-8")
    home = copy_sources(tmp_path)
    typed: dict[str, int] = {}
    with role_of_install() as name:
        for place, here in {
            "/etc/harbor-refresh/secret_key": str(secret),
            "postgresql://refresh:PASSWORD@db.internal:5432/refresh": as_role(name, name),
            "redis://:PASSWORD@redis.internal:6379/0": servers.redis.url,
        }.items():
            assert place in exported
            exported = exported.replace(place, here)
        env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
        for line in commands.splitlines():
            argv = ["/bin/sh", "-ec", f"{exported}\n{line}"]
            if "createsuperuser" in line:
                screen = answered(argv, ["boss", "boss@refresh.example", *["of-the-harbor-7"] * 2], home, env)
                assert "Superuser created successfully." in screen
                continue
            done = ran(argv, folder=home, env=env)
            typed[line] = done.returncode
            if "doctor" in line:
                assert "No worker is alive." in done.stdout, done.stderr
        with psycopg.connect(as_role(name, name)) as mine:
            accounts = mine.execute("SELECT username, is_superuser FROM auth_user").fetchall()
    assert accounts == [("boss", True)]
    assert typed == {
        "python manage.py check --deploy": 0,
        "python manage.py migrate": 0,
        "python manage.py collectstatic --noinput": 0,
        "python manage.py doctor": 1,
    }


def test_the_statements_for_a_pooler_limit_every_session_of_the_role() -> None:
    with (
        role_of_install() as name,
        psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server,
    ):
        for one in statements(pages.section(PAGE, "PgBouncer"), refresh=name):
            server.execute(one)
        with psycopg.connect(as_role(name, name)) as mine:
            limits = [
                mine.execute(f"SHOW {one}".encode()).fetchone()
                for one in (
                    "lock_timeout",
                    "idle_in_transaction_session_timeout",
                    "client_connection_check_interval",
                )
            ]
    assert limits == [("5s",), ("20s",), ("10s",)]
