"""Delete all executions that the options choose and that have ended, with their tasks and their history."""

from typing import Any

from executions.management.output import Answer
from executions.models.action import Verb
from tasks.management.verbs.executions import bulk_verb

HELP = "delete executions that have ended"

arguments = bulk_verb.arguments


def answer(options: dict[str, Any]) -> Answer:
    return bulk_verb.answer(options, Verb.DELETE)
