"""Executions with tasks of given words, right or wrong; and the rule for a status once more, in Python."""

from typing import Any, NamedTuple

from django.db import connection

UNFINISHED = {"Pending", "Scheduled", "Running"}
KNOWN = {*UNFINISHED, "Error", "Stopped", "Success"}
END = "2026-11-02 03:04:05"


class Stored(NamedTuple):
    """The columns of an execution that a refresh may write. Times are text."""

    status: str | None
    end: str | None
    revision: int | None


def sql(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def execution(
    status: str | None = "Running", end: str | None = None, *words: str, revision: int | None = 0
) -> int:
    """An execution with a task of each word. A final task has ended at END."""
    ((pk,),) = sql(
        "INSERT INTO execution (vendor_type, status, trigger, end_time, revision)"
        " VALUES ('REPLICATION', %s, 'MANUAL', %s, %s) RETURNING id",
        status,
        end,
        revision,
    )
    for word in words:
        ended = END if word not in UNFINISHED else "0001-01-01 00:00:00"
        sql(
            "INSERT INTO task (execution_id, status, status_code, vendor_type, end_time)"
            " VALUES (%s, %s, 0, 'REPLICATION', %s)",
            pk,
            word,
            ended,
        )
    return int(pk)


def stored() -> dict[int, Stored]:
    return {
        pk: Stored(*row)
        for pk, *row in sql("SELECT id, status, end_time::text, revision FROM execution ORDER BY id")
    }


def wrong() -> dict[int, str]:
    """The executions that are not what the words of their tasks say, with what is there and what should be."""
    tasks: dict[int, list[tuple[str, str | None]]] = {}
    for pk, word, end in sql("SELECT execution_id, status, end_time::text FROM task"):
        tasks.setdefault(pk, []).append((word, end))
    found = {}
    for pk, one in stored().items():
        words = {word for word, _ in tasks.get(pk, ())}
        if not words & KNOWN:
            continue
        true = next((word for word in ("Error", "Stopped") if word in words), "Success")
        end = max((end for _, end in tasks[pk] if end is not None), default=None)
        if words & UNFINISHED:
            true, end = "Running", None
        if (one.status, one.end) != (true, end):
            found[pk] = f"{one.status} {one.end}, and {sorted(words)} say {true} {end}"
    return found


def everything() -> dict[str, Any]:
    """Both tables, whole."""
    return {name: sql(f"SELECT to_jsonb(t) FROM {name} t ORDER BY id") for name in ("execution", "task")}
