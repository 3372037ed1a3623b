"""PostgreSQL understands every statement of ours on Harbor's tables: each column and each type is there."""

from collections import defaultdict

import pytest
from django.db import connection

from tests.integration.statements import planned


@pytest.mark.usefixtures("attached")
def test_postgresql_understands_every_statement_on_harbors_tables() -> None:
    statements, refused = planned(), {}
    with connection.cursor() as cursor:
        for name, words in statements.items():
            try:
                cursor.execute(f"EXPLAIN {words}", defaultdict(lambda: None))
            except Exception as exc:  # every one is told
                refused[name] = str(exc).splitlines()[0]
    assert refused == {}
    assert len(statements) > 50
