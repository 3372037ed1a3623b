"""Executions to begin with: new ones, some that drifted, some that cannot be written."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.deletion import delete_many_ended
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop_many
from harbor_refresh.executions.models import Execution

AGES_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def made(count: int = 1, vendor: str = "TEST") -> tuple[Execution, list[int]]:
    execution = create(NewExecution(vendor, tasks=[NewTask()] * count))
    return execution, sorted(execution.tasks.values_list("pk", flat=True))


def with_tasks(*statuses: str, vendor: str = "SCAN_ALL", **fields: Any) -> Execution:
    """An execution with a task of each of these statuses, refreshed."""
    execution = create(NewExecution(vendor, tasks=[NewTask() for _ in statuses], **fields))
    pks = execution.tasks.order_by("pk").values_list("pk", flat=True)
    report([Report(pk, status, 1, f"it is {status}") for pk, status in zip(pks, statuses, strict=True)])
    refresh([execution.pk])
    execution.refresh_from_db()
    return execution


def status_of(execution: Execution) -> str:
    execution.refresh_from_db()
    return execution.status


def delete(ids: Iterable[int]) -> int:
    """Delete executions, whether they have ended or not; return how many existed."""
    given = list(ids)
    stop_many(given)
    return len(delete_many_ended(given))


def fails_with(sqlstate: str, execution: Execution) -> None:
    """Make every write of this row fail with this error."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no more' USING ERRCODE = '{sqlstate}'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER fail BEFORE UPDATE ON execution FOR EACH ROW "
            f"WHEN (new.id = {execution.pk}) EXECUTE FUNCTION fail()"
        )


def drifted(minutes: int = 60, vendor: str = "TEST") -> Execution:
    """Create an execution whose only task ended so long ago, and that was not marked."""
    execution, _ = made(1, vendor)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE task SET status = 'Success', status_code = 3, "
            "update_time = now() - %s, end_time = now() - %s WHERE execution_id = %s",
            [timedelta(minutes=minutes)] * 2 + [execution.pk],
        )
    return execution
