"""What a message carries for the worker that gets it, under one name among its headers."""

from typing import Any

from executions.queue import Offer
from executions.usecases.jobs import Message

NAME = "harbor_job"


def of(message: Message) -> dict[str, Any]:
    return {
        NAME: {
            "task": message.task_id,
            "revision": message.revision,
            "runs": message.runs,
            "most": message.max_attempts,
            "followed": message.has_followers,
            "database": message.database,
        }
    }


def offer(job: str, header: dict[str, Any]) -> Offer:
    return Offer(
        job=job,
        task_id=header["task"],
        revision=header["revision"],
        runs=header["runs"],
        most=header["most"],
        database=header.get("database", ""),
    )
