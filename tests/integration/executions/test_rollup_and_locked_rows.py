"""Rows that another transaction has locked: a refresh waits for them, or counts them as busy."""

import psycopg
import pytest
from django.db import connection

from executions.deletion import delete
from executions.models import Quarantine
from executions.reports import Report, report
from executions.rollup import Refreshed, refresh
from executions.sql import text as statement_of
from tests import servers
from tests.integration.concurrency import in_background, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.executions.table_order import rows_come_in_another_order
from tests.integration.sample_executions import made, status_of

pytestmark = pytest.mark.usefixtures("database")


def test_only_refreshable_executions_count_as_busy(database: str) -> None:
    (busy, _), (held, _), (free, _), (gone, _) = made(1), made(1), made(1), made(1)
    Quarantine.objects.create(execution=held, reason="x", attempts=1)
    delete([gone.pk])
    ids = [busy.pk, held.pk, free.pk, gone.pk]
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution WHERE id = ANY(%s) FOR UPDATE", [[busy.pk, held.pk]])
        assert refresh(ids, wait=False) == Refreshed(succeeded=1, locked={busy.pk})
    assert refresh(ids, wait=False) == Refreshed(succeeded=2)


def test_a_direct_refresh_waits_for_the_lock(database: str) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution FOR UPDATE")
        with in_background(lambda: refresh([execution.pk])) as refreshed:
            wait_until(lambda: waiting_for_locks() == 1, "the refresh waits for the row")
            assert status_of(execution) == "Running"
            other.rollback()
            assert refreshed() == Refreshed(succeeded=1, changed=1)
    assert status_of(execution) == "Success"


def test_a_refresh_locks_in_the_order_of_ids_and_not_of_the_table(database: str) -> None:
    """It waits for the first row before it locks the second; else two refreshes could wait for each other."""
    (first, (one,)), (second, (two,)) = made(1), made(1)
    report([Report(one, "Success"), Report(two, "Success")])
    rows_come_in_another_order(database, "execution", first.pk)
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE", [first.pk])
        with in_background(lambda: refresh([first.pk, second.pk])) as refreshed:
            wait_until(lambda: waiting_for_locks() == 1, "the refresh waits for the first row")
            other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE NOWAIT", [second.pk])
            other.rollback()
            assert refreshed() == Refreshed(succeeded=2, changed=2)


def test_the_refresh_reads_its_locks_and_its_tasks_in_two_statements() -> None:
    """READ COMMITTED is what makes the second see what the first waited for."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone()[0] == "read committed"
    assert "FOR NO KEY UPDATE" in statement_of("executions", "lock_executions")
