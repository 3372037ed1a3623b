"""Databases of a Harbor: with its own tables alone, or with ours beside them, migrated by an attached process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import psycopg
from django.contrib.contenttypes.models import ContentType
from django.db import connections

from harbor_refresh.executions.attached.attachment import HARBOR, SEARCH_PATH
from tests import servers
from tests.integration.command_output import manage

SCHEMA = (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")
#: What a process has in its environment if it is attached.
ATTACHED = {"REFRESH_ATTACH": HARBOR}


def make_harbors_database(name: str) -> None:
    """A database as Harbor's migrations leave it, with none of our tables."""
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
    with psycopg.connect(servers.postgres.url_for(name)) as harbor:
        harbor.execute(SCHEMA.encode())


def manage_attached(name: str, *words: str, **environment: str) -> CompletedProcess[str]:
    """A command as a process that is attached to this database."""
    return manage(*words, **{**ATTACHED, "DATABASE_URL": servers.postgres.url_for(name), **environment})


@contextmanager
def connections_attached() -> Iterator[None]:
    """Django's connections find the tables as those of an attached process do."""
    options = connections["default"].settings_dict["OPTIONS"]
    before = options["options"]
    options["options"] = f"{before} -c search_path={SEARCH_PATH}"
    ContentType.objects.clear_cache()
    yield
    connections["default"].close()
    ContentType.objects.clear_cache()
    options["options"] = before
