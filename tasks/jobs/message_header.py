"""The header of a job's message: what the worker that receives it must know of the job, under one name."""

from typing import Any

from harbor_refresh.executions.status import MAX_ID, MAX_REVISION
from harbor_refresh.executions.text import is_whole
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.records.run import ReceivedMessage

NAME = "harbor_job"


def of(message: Message) -> dict[str, Any]:
    return {
        NAME: {
            "task": message.task_id,
            "revision": message.revision,
            "runs": message.runs,
            "followed": message.has_followers,
            "database": message.database,
            "arguments": message.arguments_revision,
        }
    }


def of_another_try(header: dict[str, Any], revision: int, runs: int, arguments: int) -> dict[str, Any]:
    """Return the headers of a message that a run sends for another try. `arguments` is the revision of its
    arguments (records/arguments.py)."""
    return {NAME: {**header, "revision": revision, "runs": runs, "arguments": arguments}}


def received(job: str, header: dict[str, Any]) -> ReceivedMessage:
    return ReceivedMessage(
        job=job,
        task_id=header["task"],
        revision=header["revision"],
        runs=header["runs"],
        database=header.get("database", ""),
        arguments_revision=header.get("arguments") or 0,
    )


def database_of(header: Any) -> str:
    """Return the name of the database that the message is for; empty if the header, which may hold anything, has
    none."""
    database = header.get("database") if isinstance(header, dict) else None
    return database if isinstance(database, str) else ""


def task_of(header: Any) -> tuple[int, int] | None:
    """Return the task that a message is for, and its revision or 0. None if the header, which may hold anything,
    names no task."""
    if not isinstance(header, dict) or not is_whole(header.get("task"), 1, MAX_ID):
        return None
    revision: Any = header.get("revision")
    return header["task"], revision if is_whole(revision, 0, MAX_REVISION) else 0
