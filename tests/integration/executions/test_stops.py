"""stop: what is not final is stopped, and its execution at once."""

import psycopg
import pytest
from django.db import connection, transaction

from executions.creation import NewExecution, create
from executions.models import Execution, Quarantine, Release, StatusChange, Task
from executions.news import Member
from executions.reports import Report, report
from executions.rollup import refresh
from executions.stops import stop
from tests import servers
from tests.integration.concurrency import in_background, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.executions.table_order import rows_come_in_another_order
from tests.integration.sample_executions import made, status_of

pytestmark = pytest.mark.usefixtures("database")


def test_stopping_stops_unfinished_tasks_and_their_execution_at_once(changed: list[Member]) -> None:
    execution, tasks = made(3)
    other, _ = made(1)
    report([Report(tasks[0], "Success")])
    changed.clear()
    assert stop(execution.pk) == 2
    assert [row["status"] for row in rows(Task, execution=execution).values()] == [
        "Success",
        "Stopped",
        "Stopped",
    ]
    assert status_of(execution) == "Stopped"
    assert status_of(other) == "Running"
    assert changed == []
    before = (rows(Execution), rows(Task), rows(StatusChange))
    assert stop(execution.pk) == 0
    assert (rows(Execution), rows(Task), rows(StatusChange)) == before


def test_a_stopped_task_that_reports_late_stays_stopped_until_it_runs_again() -> None:
    execution, tasks = made(1)
    stop(execution.pk)
    assert report([Report(tasks[0], "Success")]).applied == 0
    assert report([Report(tasks[0], "Running", 1)]).applied == 1
    refresh([execution.pk])
    assert status_of(execution) == "Running"


def test_an_execution_without_tasks_is_stopped_itself() -> None:
    execution = create(NewExecution("TEST"))
    assert stop(execution.pk) == 0
    assert status_of(execution) == "Stopped"
    assert execution.history.count() == 1
    assert stop(execution.pk) == 0
    assert execution.history.count() == 1


def test_a_stop_whose_refresh_fails_stops_the_tasks_and_tells_of_it(changed: list[Member]) -> None:
    execution, _ = made(1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution ADD CONSTRAINT never CHECK (status <> 'Stopped')")
    assert stop(execution.pk) == 1
    assert Task.objects.get().status == "Stopped"
    assert status_of(execution) == "Running"
    assert changed == [(execution.pk, "TEST")]


def test_stopping_releases_an_execution_from_quarantine_and_stops_it_at_once() -> None:
    execution, _ = made(2)
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    assert stop(execution.pk) == 2
    assert (status_of(execution), rows(Quarantine)) == ("Stopped", {})
    assert execution.history.get().to_status == "Stopped"


def test_a_stop_that_rolls_back_leaves_the_execution_in_quarantine(changed: list[Member]) -> None:
    execution, _ = made(1)
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    before = (rows(Execution), rows(Task), rows(Quarantine), rows(Release))
    with transaction.atomic():
        stop(execution.pk)
        transaction.set_rollback(True)
    assert (rows(Execution), rows(Task), rows(Quarantine), rows(Release)) == before
    assert changed == []


def test_a_stop_locks_tasks_in_the_order_of_ids_as_reports_do(database: str) -> None:
    """It waits for the first task before it locks the second; else it and a report could wait for each other."""
    execution, tasks = made(2)
    rows_come_in_another_order(database, "task", tasks[0])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE", [tasks[0]])
        with in_background(lambda: stop(execution.pk)) as stopped:
            wait_until(lambda: waiting_for_locks() == 1, "the stop waits for the first task")
            other.execute("SELECT FROM task WHERE id = %s FOR UPDATE NOWAIT", [tasks[1]])
            other.rollback()
            assert stopped() == 2
    assert status_of(execution) == "Stopped"
