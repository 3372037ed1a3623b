"""PostgreSQL understands every statement of ours on Harbor's tables: each column and each type is there."""

from collections import defaultdict
from importlib.resources import files

import pytest
from django.db import connection

from executions.sql import text

PACKAGES = (
    "executions",
    "tasks",
    "harbor_refresh",
    "harbor_refresh.attach",
    "harbor_refresh.doctor",
    "harbor_refresh.tracing",
)
#: Statements that make something, which a migration runs, and those that set something.
NOT_PLANNED = ("CREATE ", "ALTER ", "SET ")


def names(package: str) -> list[str]:
    folder = files(package).joinpath("sql")
    folders = [folder, folder.joinpath("attached")]
    found = {one.name for each in folders if each.is_dir() for one in each.iterdir() if one.name.endswith(".sql")}
    return sorted(name.removesuffix(".sql") for name in found)


def statement(package: str, name: str) -> str:
    lines = [line for line in text(package, name).splitlines() if not line.startswith("--")]
    return "\n".join(lines)


@pytest.mark.usefixtures("attached")
def test_postgresql_understands_every_statement_on_harbors_tables() -> None:
    refused, planned = {}, 0
    with connection.cursor() as cursor:
        for package in PACKAGES:
            for name in names(package):
                words = statement(package, name)
                if words.startswith(NOT_PLANNED):
                    continue
                try:
                    cursor.execute(f"EXPLAIN {words}", defaultdict(lambda: None))
                    planned += 1
                except Exception as exc:  # every one is told
                    refused[f"{package}/{name}"] = str(exc).splitlines()[0]
    assert refused == {}
    assert planned > 80
