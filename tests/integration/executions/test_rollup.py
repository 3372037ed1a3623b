"""The refresh against the reference model, and what it must do when others do something at the same moment."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from harbor_refresh.executions.models import Execution, Quarantine, StatusChange, Task
from harbor_refresh.executions.sql import text as statement_of
from tests import servers
from tests.integration.concurrency import in_background, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.executions.reference_model import CODE, is_final, rollup

pytestmark = pytest.mark.usefixtures("database")

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

Stored = tuple[str, int]


def moment(hours: int) -> datetime:
    return LONG_AGO + timedelta(hours=hours)


def make(stored: Stored, tasks: Sequence[Stored]) -> Execution:
    """An execution as stored, with tasks; each is (status, the hour of its end, if it is final)."""
    status, hour = stored
    execution = Execution.objects.create(
        vendor_type="TEST",
        status=status,
        start_time=LONG_AGO,
        update_time=LONG_AGO,
        end_time=moment(hour) if is_final(status) else None,
    )
    Task.objects.bulk_create(
        Task(
            execution=execution,
            vendor_type="TEST",
            status=status,
            status_code=CODE.get(status, 3),
            update_time=LONG_AGO,
            end_time=moment(hour) if is_final(status) else None,
        )
        for status, hour in tasks
    )
    return execution


def refresh_and_compare(ids: Sequence[int] | None = None) -> Refreshed:
    """Refresh. The rows of these executions must be what the model says, and all other rows unchanged."""
    expected, history = rows(Execution), history_rows()
    tasks, versions = rows(Task), row_versions()
    ids = list(expected) if ids is None else ids
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            now = cursor.fetchone()[0]
        outcome = refresh(ids)
    untouched = set(expected)
    for pk in sorted(set(ids) & set(expected)):
        row = expected[pk]
        own = [(t["status"], t["end_time"]) for t in tasks.values() if t["execution_id"] == pk]
        answer = rollup(own)
        if answer is None or answer == (row["status"], row["end_time"]):
            continue
        history.add((pk, row["revision"] + 1, row["status"], answer[0], now))
        row |= {
            "status": answer[0],
            "end_time": answer[1],
            "revision": row["revision"] + 1,
            "update_time": now,
        }
        untouched.discard(pk)
    assert rows(Execution) == expected
    assert rows(Task) == tasks
    assert history_rows() == history
    after = row_versions()
    assert {pk for pk in versions if after[pk] == versions[pk]} == untouched
    assert outcome.changed == len(expected) - len(untouched)
    return outcome


def history_rows() -> set[tuple[Any, ...]]:
    columns = ("execution_id", "revision", "from_status", "to_status", "at")
    return set(StatusChange.objects.values_list(*columns))


def row_versions() -> dict[int, tuple[str, str]]:
    """xmin and place of each row: they change with every write, even one of the same values."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, xmin::text, ctid::text FROM execution")
        return {pk: (xmin, ctid) for pk, xmin, ctid in cursor.fetchall()}


statuses = st.sampled_from(sorted(CODE))
stored_values = st.tuples(statuses, st.integers(0, 3))


@given(
    executions=st.lists(st.tuples(stored_values, st.lists(stored_values, max_size=6)), min_size=1, max_size=8),
    asked=st.lists(st.integers(0, 9), max_size=12),
)
@settings(max_examples=100, derandomize=True, database=None)
def test_any_mix_of_tasks_is_rolled_up_as_the_model_says_and_no_other_row_is_written(
    executions: list[Any], asked: list[int]
) -> None:
    made = [make(*one) for one in executions]
    refresh_and_compare([(made[index].pk if index < len(made) else index + 10**9) for index in asked])
    refresh_and_compare()
    assert refresh_and_compare().changed == 0
    Execution.objects.all().delete()


ORDER = [
    (["Pending", "Error", "Stopped", "Success"], "Running"),
    (["Scheduled"], "Running"),
    (["Running", "Error"], "Running"),
    (["Error", "Stopped", "Success"], "Error"),
    (["Stopped", "Success"], "Stopped"),
    (["Success", "Success"], "Success"),
]


@pytest.mark.parametrize(("tasks", "answer"), ORDER)
def test_the_order_of_the_rules(tasks: list[str], answer: str) -> None:
    execution = make(("Pending", 0), [(status, hour) for hour, status in enumerate(tasks)])
    refresh_and_compare()
    execution.refresh_from_db()
    assert execution.status == answer


def test_a_retried_task_reopens_its_execution_and_the_history_records_it() -> None:
    execution = make(("Running", 0), [("Success", 1), ("Error", 2)])
    failed = execution.tasks.get(status="Error").pk
    refresh_and_compare()
    report([Report(failed, "Running", 1)])
    refresh_and_compare()
    execution.refresh_from_db()
    assert (execution.status, execution.end_time) == ("Running", None)
    report([Report(failed, "Success", 1)])
    refresh_and_compare()
    steps = execution.history.values_list("revision", "from_status", "to_status")
    assert list(steps) == [
        (1, "Running", "Error"),
        (2, "Error", "Running"),
        (3, "Running", "Success"),
    ]


def test_a_status_of_an_old_release_counts_as_success() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE task DROP CONSTRAINT task_status_has_its_code")
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_status_known")
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_ends_when_final")
    one = make(("Running", 0), [("Succeed", 1), ("Success", 2)])
    other = make(("Succeed", 1), [("Succeed", 1), ("Error", 0)])
    refresh_and_compare()
    assert refresh_and_compare().changed == 0
    assert list(Execution.objects.order_by("pk").values_list("pk", "status")) == [
        (one.pk, "Success"),
        (other.pk, "Error"),
    ]


def test_quarantined_executions_are_not_refreshed_and_not_counted() -> None:
    held, free = (make(("Running", 0), [("Success", 1)]) for _ in range(2))
    Quarantine.objects.create(execution=held, reason="x", attempts=5)
    before = rows(Execution, pk=held.pk)
    assert refresh([held.pk, free.pk]) == Refreshed(succeeded=1, changed=1)
    assert rows(Execution, pk=held.pk) == before
    assert list(StatusChange.objects.values_list("execution_id", flat=True)) == [free.pk]


def test_a_row_that_cannot_be_refreshed_fails_alone() -> None:
    made = [make(("Running", 0), [("Success", 1)]) for _ in range(40)]
    bad = {made[7].pk, made[8].pk, made[39].pk}
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'row % is cursed', NEW.id; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER cursed BEFORE UPDATE ON execution FOR EACH ROW "
            f"WHEN (NEW.id IN ({', '.join(map(str, bad))})) EXECUTE FUNCTION refuse()"
        )
    outcome = refresh([one.pk for one in made])
    assert outcome.failed == {pk: f"row {pk} is cursed" for pk in bad}
    assert (outcome.succeeded, outcome.changed) == (37, 37)
    assert set(Execution.objects.filter(status="Running").values_list("pk", flat=True)) == bad
    assert not StatusChange.objects.filter(execution_id__in=bad).exists()


def test_a_history_that_cannot_be_written_leaves_the_execution_as_it_was() -> None:
    execution = make(("Running", 0), [("Success", 1)])
    StatusChange.objects.create(
        execution=execution, revision=1, from_status="Error", to_status="Error", at=LONG_AGO
    )
    before = rows(Execution)
    assert set(refresh([execution.pk]).failed) == {execution.pk}
    assert rows(Execution) == before


def test_a_database_that_goes_down_fails_no_row(database: str) -> None:
    execution = make(("Running", 0), [("Success", 1)])

    def is_ended() -> None:
        with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [database],
            )

    is_ended()
    with pytest.raises(DatabaseDown, match=r"^PostgreSQL: "):
        refresh([execution.pk])
    assert refresh([execution.pk]) == Refreshed(1, 1)


# the race of two refreshes


def test_two_refreshes_at_the_same_moment_never_leave_the_older_result(database: str) -> None:
    """The late one begins while the task runs, and waits for the lock of the other, which sees the newer task.
    One statement that locks and aggregates would write what it saw before it waited."""
    execution = make(("Stopped", 1), [("Running", 1)])
    task = execution.tasks.get().pk
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        values = {"ids": [execution.pk], "count": 1, "waited": 0.0}
        other.execute("SELECT FROM execution WHERE id = %s FOR NO KEY UPDATE", [execution.pk])
        with in_background(lambda: refresh([execution.pk])) as late:
            wait_until(waiting_for_locks, "the late one waits for the lock")
            report([Report(task, "Success")])
            statement = statement_of("harbor_refresh.executions", "refresh_executions")
            assert len(other.execute(statement, values).fetchall()) == 1
            other.commit()
            late()
    execution.refresh_from_db()
    assert (execution.status, execution.revision) == ("Success", 1)


def test_a_refresh_in_an_outer_transaction_does_not_raise_the_error_of_a_row() -> None:
    """stop() refreshes inside its own transaction, which must go on."""
    execution = make(("Running", 0), [("Success", 1)])
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution ADD CONSTRAINT never CHECK (status <> 'Success')")
    with transaction.atomic():
        outcome = refresh([execution.pk])
        assert set(outcome.failed) == {execution.pk}
        assert Execution.objects.count() == 1
    with pytest.raises(DatabaseError), transaction.atomic():
        Execution.objects.update(status="Success", end_time=LONG_AGO)
