"""Rows that another transaction has locked, and errors of the database: which fail a row, and which fail none."""

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.errors import DatabaseDown, TableLocked
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from harbor_refresh.executions.models import Quarantine, Task
from tests import servers
from tests.integration.concurrency import in_background, statement_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.executions.table_order import rows_come_in_another_order
from tests.integration.sample_executions import delete, fails_with, made, status_of

pytestmark = pytest.mark.usefixtures("database")


def test_only_refreshable_executions_count_as_busy() -> None:
    (busy, _), (held, _), (free, _), (gone, _) = made(1), made(1), made(1), made(1)
    Quarantine.objects.create(execution=held, reason="x", attempts=1)
    delete([gone.pk])
    ids = [busy.pk, held.pk, free.pk, gone.pk]
    with statement_held_open("SELECT FROM execution WHERE id = ANY(%s) FOR UPDATE", [[busy.pk, held.pk]]):
        assert refresh(ids, wait=False) == Refreshed(succeeded=1, locked={busy.pk})
    assert refresh(ids, wait=False) == Refreshed(succeeded=2)


#: A migration that changes a column, and one that makes an index.
TABLE_LOCKS = [
    ("task", "ACCESS EXCLUSIVE"),
    ("execution", "ACCESS EXCLUSIVE"),
    ("execution", "SHARE"),
    ("execution_status_change", "ACCESS EXCLUSIVE"),
]


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(("table", "strength"), TABLE_LOCKS)
def test_a_table_that_another_transaction_holds_fails_no_execution_and_is_waited_for_once(
    table: str, strength: str, waits: bool, database: str
) -> None:
    executions, ended = zip(*(made(1) for _ in range(4)), strict=True)
    report([Report(task, "Success") for (task,) in ended])
    ids = [one.pk for one in executions]
    refresh(ids[:1], wait=waits)  # PostgreSQL keeps the plans of functions from here on
    wait_at_most("200ms")
    with (
        statement_held_open(f"LOCK TABLE {table} IN {strength} MODE"),
        CaptureQueriesContext(connection) as seen,
        pytest.raises(TableLocked, match=r"^PostgreSQL: another transaction holds a table: canceling"),
    ):
        refresh(ids, wait=waits)
    assert len([one for one in seen.captured_queries if "FOR NO KEY UPDATE" in one["sql"]]) == 1
    assert [status_of(one) for one in executions] == ["Success", *["Running"] * 3]
    assert refresh(ids, wait=waits) == Refreshed(succeeded=4, changed=3)


def test_a_row_that_is_locked_in_the_parent_is_found_and_holds_up_no_other_execution(database: str) -> None:
    """The task that stands for the child in its parent belongs to the refresh of the child."""
    parent, _ = made(1)
    child = create(NewExecution("TEST", parent=parent.pk, tasks=[NewTask()]))
    others = [made(1)[0] for _ in range(3)]
    ids = [child.pk, *(one.pk for one in others)]
    report([Report(pk, "Success") for pk in Task.objects.filter(execution__in=ids).values_list("pk", flat=True)])
    wait_at_most("200ms")
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        link = "SELECT task_id FROM execution_link WHERE child_id = %s"
        other.execute(f"SELECT FROM task WHERE id = ({link}) FOR UPDATE", [child.pk])
        assert refresh(ids, wait=False) == Refreshed(succeeded=3, changed=3, locked={child.pk})
        reason = "canceling statement due to lock timeout"
        assert refresh(ids) == Refreshed(succeeded=3, failed={child.pk: reason}, locked={child.pk})
    assert refresh(ids, wait=False) == Refreshed(succeeded=4, changed=1)


def wait_at_most(time: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [time])


def test_a_refresh_locks_in_the_order_of_ids_and_not_of_the_table(database: str) -> None:
    """It waits for the first row before it locks the second; else two refreshes could wait for each other."""
    (first, (one,)), (second, (two,)) = made(1), made(1)
    report([Report(one, "Success"), Report(two, "Success")])
    rows_come_in_another_order(database, "execution", first.pk)
    with (
        statement_held_open("SELECT FROM execution WHERE id = %s FOR UPDATE", [first.pk]) as other,
        in_background(lambda: refresh([first.pk, second.pk])) as refreshed,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the refresh waits for the first row")
        other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE NOWAIT", [second.pk])
        other.rollback()
        assert refreshed() == Refreshed(succeeded=2, changed=2)


@pytest.mark.parametrize("sqlstate", ["53000", "53200", "53400", "54000", "23514"])
def test_an_error_of_one_row_fails_that_row_alone(sqlstate: str) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    fails_with(sqlstate, bad)
    assert refresh([good.pk, bad.pk]) == Refreshed(succeeded=1, changed=1, failed={bad.pk: "no more"})
    assert (status_of(good), status_of(bad)) == ("Success", "Running")


@pytest.mark.parametrize("sqlstate", ["08006", "53100", "53300", "57P01", "57P02", "57P03", "25006", "25P03"])
def test_an_error_of_the_server_fails_no_execution(sqlstate: str) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    fails_with(sqlstate, bad)
    with pytest.raises(DatabaseDown, match=r"^PostgreSQL: no more$"):
        refresh([good.pk, bad.pk])
    assert (status_of(good), status_of(bad)) == ("Running", "Running")
