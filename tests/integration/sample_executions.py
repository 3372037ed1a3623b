"""Executions in the situations these tests begin with, and short looks at what has become of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from executions.creation import NewExecution, NewTask, create
from executions.models import Execution
from tasks.models import Watermark
from tests.integration.redis_state import Redis, whole_redis

AGES_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def names(told: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [name for name, _ in told]


def made(count: int = 1, vendor: str = "TEST") -> tuple[Execution, list[int]]:
    execution = create(NewExecution(vendor, tasks=[NewTask()] * count))
    return execution, sorted(execution.tasks.values_list("pk", flat=True))


def member(execution: Execution) -> str:
    return f"{execution.pk}:{execution.vendor_type}"


def marked(redis: Redis) -> set[str]:
    found: set[str] = whole_redis(redis).get("queue:v2", set())
    return found


def status_of(execution: Execution) -> str:
    execution.refresh_from_db()
    return execution.status


def cursed(execution: Execution) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE execution ADD CONSTRAINT cursed CHECK (id <> {execution.pk}) NOT VALID")


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


def drifted(minutes: int = 60) -> Execution:
    """Create an execution whose only task ended so long ago, and that was not marked."""
    execution, _ = made(1)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE task SET status = 'Success', status_code = 3, "
            "update_time = now() - %s, end_time = now() - %s WHERE execution_id = %s",
            [timedelta(minutes=minutes)] * 2 + [execution.pk],
        )
    return execution


def watermark() -> datetime:
    return Watermark.objects.get().settled_before or AGES_AGO


def rows_come_in_another_order(database: str, table: str, first: int) -> None:
    """From now on a new connection reads this table in the order of its pages, and this row comes last there."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET id = id WHERE id = %s", [first])
        cursor.execute(f"SELECT id FROM {table} ORDER BY ctid DESC LIMIT 1")
        assert cursor.fetchone() == (first,)
        for way in ("indexscan", "indexonlyscan", "bitmapscan", "mergejoin", "nestloop"):
            cursor.execute(f"ALTER DATABASE {database} SET enable_{way} = off")
