"""delete: what goes along, what happens if a stop or a report comes at the same moment, and the tombstones."""

from contextlib import suppress

import psycopg
import pytest
from django.db import connection

from harbor_refresh.executions.errors import NoSuchExecution, StillReferenced
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.deletion import delete_ended, delete_many_ended
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import finish, stop
from harbor_refresh.executions.models import Execution, Quarantine, StatusChange, Task
from harbor_refresh.executions.status import Status
from tests import servers
from tests.integration.concurrency import in_background, statement_held_open, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.executions.table_order import in_another_order_on_disk
from tests.integration.sample_executions import delete, made

pytestmark = pytest.mark.usefixtures("database")


def test_of_many_only_those_that_have_ended_are_deleted() -> None:
    ended, half, going, finished, empty = (
        *(made(2)[0] for _ in range(3)),
        *(create(NewExecution("TEST")) for _ in range(2)),
    )
    tasks = {one: list(one.tasks.order_by("pk").values_list("pk", flat=True)) for one in (ended, half)}
    report([Report(pk, "Success") for pk in (*tasks[ended], tasks[half][0])])
    finish(finished.pk, Status.SUCCESS)
    ids = [one.pk for one in (ended, half, going, finished, empty)]
    assert sorted(delete_many_ended([*ids[::-1], 7_777])) == [ended.pk, finished.pk]
    assert sorted(rows(Execution)) == [half.pk, going.pk, empty.pk]
    assert {row["execution_id"] for row in rows(Task).values()} == {half.pk, going.pk}
    assert rows(StatusChange) == {}
    assert delete_many_ended([]) == []


@pytest.mark.parametrize("constraint", ["", "DEFERRABLE INITIALLY DEFERRED"])
def test_an_execution_that_a_row_of_the_project_names_stays_and_the_error_says_which_column(
    constraint: str,
) -> None:
    free, named = (create(NewExecution("TEST")) for _ in range(2))
    for one in (free, named):
        finish(one.pk, Status.SUCCESS)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE export (batch bigint REFERENCES execution (id) {constraint})")
        cursor.execute("INSERT INTO export VALUES (%s)", [named.pk])
    with pytest.raises(StillReferenced, match=rf"execution {named.pk} stays.* in export\.batch"):
        delete_ended(named.pk)
    assert delete_many_ended([named.pk, free.pk]) == [free.pk]
    assert sorted(rows(Execution)) == [named.pk]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM export")
    delete_ended(named.pk)
    assert sorted(rows(Execution)) == []


def test_a_task_that_runs_again_while_its_execution_is_to_be_deleted_keeps_it(database: str) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Error")])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute(
            "UPDATE task SET status = 'Running', status_code = 2, status_revision = 1, end_time = NULL "
            "WHERE id = %s",
            [task],
        )
        with in_background(lambda: delete_many_ended([execution.pk])) as deleted:
            wait_until(lambda: waiting_for_locks() == 1, "the delete waits for the report")
            other.commit()
            assert deleted() == []
    assert Task.objects.get().status == "Running"


@pytest.mark.parametrize(
    ("first", "second", "outcomes"),
    [
        ("stop", "delete", (3, 1)),
        ("report", "delete", ((3, 0), 1)),
    ],
)
def test_a_deletion_and_another_change_at_the_same_moment_come_one_after_the_other(
    first: str, second: str, outcomes: tuple[object, object]
) -> None:
    """All lock tasks in id order, wherever they lie, so they do not deadlock."""
    execution, tasks = made(3)
    in_another_order_on_disk(tasks[0])

    def stopped() -> int | None:
        with suppress(NoSuchExecution):
            return stop(execution.pk)
        return None

    def reported() -> tuple[int, int]:
        outcome = report(Report(pk, "Success") for pk in reversed(tasks))
        return outcome.applied, len(outcome.refused)

    acts = {"delete": lambda: delete([execution.pk]), "stop": stopped, "report": reported}
    with (
        statement_held_open("SELECT FROM task WHERE id = %s FOR UPDATE", [tasks[2]]) as other,
        in_background(acts[first]) as earlier,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the first waits for the last task")
        with in_background(acts[second]) as later:
            wait_until(lambda: waiting_for_locks() == 2, "the second waits for the first")
            other.rollback()
            assert (earlier(), later()) == outcomes
    assert (rows(Execution), rows(Task)) == ({}, {})


def test_deleting_removes_tasks_history_and_quarantine_and_nothing_else() -> None:
    doomed, kept = [made(2)[0] for _ in range(2)]
    for one in (doomed, kept):
        stop(one.pk)
        Quarantine.objects.create(execution=one, reason="x", attempts=1)
    before = (rows(Execution), rows(Task), rows(StatusChange), rows(Quarantine))
    assert delete([doomed.pk, 10**9]) == 1
    assert (rows(Execution), rows(Task), rows(StatusChange), rows(Quarantine)) == tuple(
        {
            pk: row
            for pk, row in table.items()
            if doomed.pk not in (row.get("execution_id"), row["pk"] if index == 0 else None)
        }
        for index, table in enumerate(before)
    )
    assert delete([doomed.pk]) == 0
    assert delete([]) == 0
