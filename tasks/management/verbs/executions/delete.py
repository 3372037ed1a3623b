"""Delete all executions that the options choose and that have ended, with their tasks and their history."""

from typing import Any

from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.tasks.management.verbs.executions import bulk_verb

HELP = "delete executions that have ended"

arguments = bulk_verb.arguments


def answer(options: dict[str, Any]) -> Answer:
    return bulk_verb.answer(options, Verb.DELETE)
