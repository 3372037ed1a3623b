"""Executions with tasks of given words, right or wrong; and the rule for a status once more, in Python."""

from typing import Any, NamedTuple

from tests.harbor import rows
from tests.harbor.rows import asked

UNFINISHED = {"Pending", "Scheduled", "Running"}
KNOWN = {*UNFINISHED, "Error", "Stopped", "Success"}
END = str(rows.T2)


class Stored(NamedTuple):
    """The columns of an execution that a refresh may write. Times are text."""

    status: str | None
    end: str | None
    revision: int | None


def execution(
    status: str | None = "Running", end: str | None = None, *words: str, revision: int | None = 0
) -> int:
    """An execution with a task of each word, whatever its code says. A final task has ended at END."""
    pk = rows.execution(status, end_time=end, revision=revision, start_time=None, update_time=None)
    for word in words:
        rows.task(pk, word, 0, update_time=None)
    return pk


def stored() -> dict[int, Stored]:
    return {
        pk: Stored(*row)
        for pk, *row in asked("SELECT id, status, end_time::text, revision FROM execution ORDER BY id")
    }


def wrong() -> dict[int, str]:
    """The executions that are not what the words of their tasks say, with what is there and what should be."""
    tasks: dict[int, list[tuple[str, str | None]]] = {}
    for pk, word, end in asked("SELECT execution_id, status, end_time::text FROM task"):
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
    return {name: asked(f"SELECT to_jsonb(t) FROM {name} t ORDER BY id") for name in ("execution", "task")}
