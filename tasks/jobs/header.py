"""What a message carries for the worker that gets it, under one name among its headers."""

from typing import Any

from executions.status import MAX_ID, MAX_REVISION
from executions.text import is_whole
from tasks.jobs.lifecycle.message import Message
from tasks.jobs.records.run import Offer

NAME = "harbor_job"


def of(message: Message) -> dict[str, Any]:
    return {
        NAME: {
            "task": message.task_id,
            "revision": message.revision,
            "runs": message.runs,
            "followed": message.has_followers,
            "database": message.database,
        }
    }


def of_another_try(told: dict[str, Any], revision: int, runs: int, *, are_changed: bool) -> dict[str, Any]:
    """Of a message that a run sends for the next one. `changed`: its arguments are not those of the first."""
    again = {**told, "revision": revision, "runs": runs, "changed": bool(told.get("changed"))}
    return {NAME: with_changed_arguments(again) if are_changed else again}


def with_changed_arguments(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "changed": True}


def are_changed(told: dict[str, Any]) -> bool:
    return bool(told.get("changed"))


def offer(job: str, header: dict[str, Any]) -> Offer:
    return Offer(
        job=job,
        task_id=header["task"],
        revision=header["revision"],
        runs=header["runs"],
        database=header.get("database", ""),
    )


def task_of(header: Any) -> tuple[int, int] | None:
    """The task that a message is for, and its revision or 0. None if it names no task: it may hold anything."""
    if not isinstance(header, dict) or not is_whole(header.get("task"), 1, MAX_ID):
        return None
    revision: Any = header.get("revision")
    return header["task"], revision if is_whole(revision, 0, MAX_REVISION) else 0
