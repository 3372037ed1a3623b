"""What a message carries for the worker that gets it, under one name among its headers."""

from typing import Any

from executions.queue import Offer
from executions.usecases.jobs import Message

NAME = "harbor_job"
#: The message may have come before: the database is asked.
DOUBTFUL = 1


def of(message: Message) -> dict[str, Any]:
    return {
        NAME: {
            "task": message.task_id,
            "revision": message.revision,
            "runs": message.runs,
            "most": message.max_attempts,
            "published": message.published,
            "followed": message.has_followers,
        }
    }


def offer(job: str, header: dict[str, Any], *, redelivered: bool) -> Offer:
    return Offer(
        job=job,
        task_id=header["task"],
        revision=header["revision"],
        runs=header["runs"],
        most=header["most"],
        published=DOUBTFUL if redelivered else header["published"],
    )
