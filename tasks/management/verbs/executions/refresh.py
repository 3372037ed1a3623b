"""Bring the status of all executions that the options choose to what their tasks say, in this process."""

from typing import Any

from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.tasks.management.verbs.executions import bulk_verb

HELP = "bring the status of executions to what their tasks say, without the queue"

arguments = bulk_verb.arguments


def answer(options: dict[str, Any]) -> Answer:
    return bulk_verb.answer(options, Verb.REFRESH)
