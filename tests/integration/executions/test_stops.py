"""stop: what is not final is stopped, and its execution at once. finish: a status that is set by hand, once."""

from functools import partial

import pytest
from django.db import connection

from harbor_refresh.executions.errors import AlreadyFinal, HasTasks, NoSuchExecution
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, add_tasks, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import Stopped, finish, stop, stop_many
from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.executions.news.after_commit import Member
from harbor_refresh.executions.status import Status
from tests.integration.concurrency import in_background, statement_held_open, transaction_held_open, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.executions.table_order import rows_come_in_another_order
from tests.integration.sample_executions import AGES_AGO, made, status_of

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


def test_a_stop_whose_refresh_fails_stops_the_tasks_and_tells_of_it(changed: list[Member]) -> None:
    execution, _ = made(1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution ADD CONSTRAINT never CHECK (status <> 'Stopped')")
    assert stop(execution.pk) == 1
    assert Task.objects.get().status == "Stopped"
    assert status_of(execution) == "Running"
    assert changed == [(execution.pk, "TEST")]


def test_many_are_stopped_in_one_transaction_and_only_what_had_not_ended_is_named(changed: list[Member]) -> None:
    going, ended, empty, done = made(2)[0], made(1)[0], create(NewExecution("TEST")), create(NewExecution("TEST"))
    report([Report(pk, "Error") for pk in ended.tasks.values_list("pk", flat=True)])
    refresh([ended.pk])
    finish(done.pk, Status.SUCCESS)
    changed.clear()
    ids = [one.pk for one in (going, ended, empty, done)]
    assert stop_many([*ids[::-1], 7_777]) == Stopped(found=4, tasks=2, executions=[going.pk, empty.pk])
    assert [status_of(one) for one in (going, ended, empty, done)] == ["Stopped", "Error", "Stopped", "Success"]
    assert [(row["execution_id"], row["to_status"]) for row in rows(StatusChange).values()] == [
        (ended.pk, "Error"),
        (done.pk, "Success"),
        (going.pk, "Stopped"),
        (empty.pk, "Stopped"),
    ]
    assert changed == []
    before = (rows(Execution), rows(Task), rows(StatusChange))
    assert stop_many(ids) == Stopped(found=4, tasks=0, executions=[])
    assert (rows(Execution), rows(Task), rows(StatusChange)) == before
    assert stop_many([]) == Stopped(0, 0, [])


def test_a_task_that_is_added_while_its_execution_is_stopped_is_stopped_as_well() -> None:
    """The execution had no tasks when the stop began."""
    execution = create(NewExecution("TEST"))
    with (
        transaction_held_open(lambda: add_tasks(execution.pk, [NewTask()])) as commit,
        in_background(lambda: stop(execution.pk)) as stopped,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the stop waits for the new task")
        commit()
        assert stopped() == 1
    assert (status_of(execution), Task.objects.get().status) == ("Stopped", "Stopped")


def test_a_stop_locks_tasks_in_the_order_of_ids_as_reports_do(database: str) -> None:
    """It waits for the first task before it locks the second; else it and a report could wait for each other."""
    execution, tasks = made(2)
    rows_come_in_another_order(database, "task", tasks[0])
    with (
        statement_held_open("SELECT FROM task WHERE id = %s FOR UPDATE", [tasks[0]]) as other,
        in_background(lambda: stop(execution.pk)) as stopped,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the stop waits for the first task")
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE NOWAIT", [tasks[1]])
        other.rollback()
        assert stopped() == 2
    assert status_of(execution) == "Stopped"


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.ERROR])
def test_an_execution_without_tasks_ends_by_hand_once_and_the_history_records_it(status: Status) -> None:
    execution = create(NewExecution("TEST"))
    finish(execution.pk, status, "because")
    execution.refresh_from_db()
    assert (execution.status, execution.status_message, execution.revision) == (
        status,
        "because",
        1,
    )
    assert execution.end_time is not None
    before = (rows(Execution), rows(StatusChange))
    with pytest.raises(AlreadyFinal, match=f"execution {execution.pk} is {status} already"):
        finish(execution.pk, Status.ERROR)
    assert (rows(Execution), rows(StatusChange)) == before
    steps = execution.history.values_list("revision", "from_status", "to_status")
    assert list(steps) == [(1, "Running", status)]


def test_an_execution_with_tasks_cannot_be_set_by_hand() -> None:
    execution, _ = made()
    before = rows(Execution)
    with pytest.raises(HasTasks, match=f"execution {execution.pk} has tasks"):
        finish(execution.pk, Status.SUCCESS)
    assert rows(Execution) == before


def test_what_does_not_exist_cannot_be_set_or_stopped() -> None:
    for verb in (partial(finish, status=Status.SUCCESS), stop):
        with pytest.raises(NoSuchExecution, match="there is no execution 99"):
            verb(99)


def test_a_status_of_an_old_release_is_final_and_cannot_be_set_by_hand() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_status_known")
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_ends_when_final")
    execution = Execution.objects.create(vendor_type="TEST", status="Succeed", end_time=AGES_AGO)
    with pytest.raises(AlreadyFinal):
        finish(execution.pk, Status.ERROR)
    assert stop(execution.pk) == 0
    assert status_of(execution) == "Succeed"
