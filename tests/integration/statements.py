"""Our statements by their packages, for tests that ask PostgreSQL about all of them."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
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
    folder = Path(str(files(package).joinpath("sql")))
    paths = {one.relative_to(folder).with_suffix("") for one in folder.rglob("*.sql")}
    found = {str(one) for one in paths if not {"attached", "schema"}.intersection(one.parts)}
    return sorted(found | {one.stem for one in folder.glob("attached/*.sql") if is_attached()})


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
