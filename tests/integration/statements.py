"""Our statements by their packages, for tests that ask PostgreSQL about all of them."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from django.db import connection

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.sql import text

PACKAGES = (
    "harbor_refresh.executions",
    "harbor_refresh.tasks",
    "harbor_refresh.tasks.jobs",
    "harbor_refresh.tasks.checks",
    "harbor_refresh.tasks.strategies",
    "examples.simulation",
    "harbor_refresh.management.attach",
)
#: Statements that make something, which a migration runs, and those that set something.
NOT_PLANNED = ("CREATE ", "ALTER ", "SET ")


def names(package: str) -> list[str]:
    """The statements that run on the tables of this database."""
    folder = files(package).joinpath("sql")
    folders = [folder, folder.joinpath("attached")] if is_attached() else [folder]
    found = {one.name for each in folders if each.is_dir() for one in each.iterdir() if one.name.endswith(".sql")}
    return sorted(name.removesuffix(".sql") for name in found)


def statement(package: str, name: str) -> str:
    lines = [line for line in text(package, name).splitlines() if not line.startswith("--")]
    return "\n".join(lines)


def planned() -> dict[str, str]:
    """The statements that PostgreSQL plans, by package and name."""
    found = {f"{package}/{name}": statement(package, name) for package in PACKAGES for name in names(package)}
    return {name: words for name, words in found.items() if not words.startswith(NOT_PLANNED)}


def plan(statement: str, values: Sequence[Any] | None = None) -> str:
    """The plan on tables that are too small for an index."""
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}", values)
        lines = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("RESET enable_seqscan")
    return lines
