"""A project with psycopg2, where psycopg 3 can be loaded, and where it cannot."""

from pathlib import Path

import pytest
from redis import Redis

from tests.distribution import hosts
from tests.distribution.fixtures import Make

pytestmark = pytest.mark.slow

PROGRAM = """
import django

django.setup()
from django.core.checks import run_checks
from django.db import connection

with connection.cursor() as cursor:
    cursor.execute("SELECT 1")
    print(type(connection.connection).__module__.partition(".")[0], cursor.fetchone())
for one in run_checks():
    print(one.id, one.hint.partition(". ")[0])
"""


def test_django_takes_psycopg_3_and_psycopg2_only_where_that_cannot_be_loaded(
    environment: Make, database: str, redis: Redis, tmp_path: Path
) -> None:
    """As docs/howto/existing_project.md says. The project starts in both, and the check tells what to type."""
    python = environment("admin,beat", "pinned", ("psycopg2-binary",))
    variables = hosts.make(tmp_path / "host", python, database)
    (tmp_path / "host/program.py").write_text(PROGRAM, encoding="utf-8")

    def drivers(**more: str) -> list[str]:
        return python.run("program.py", cwd=tmp_path / "host", **variables, **more).splitlines()

    assert drivers() == ["psycopg (1,)"]
    # psycopg's own variable, with a library that no machine has
    assert drivers(PSYCOPG_IMPL="none") == [
        "psycopg2 (1,)",
        'harbor_refresh.E009 Type: pip install "psycopg[binary]"',
    ]
