"""Stop all executions that the options choose: waiting jobs do not begin, running jobs are asked to stop."""

from typing import Any

from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.tasks.management.verbs.executions import bulk_verb

HELP = "stop executions, their tasks and their jobs"

arguments = bulk_verb.arguments


def answer(options: dict[str, Any]) -> Answer:
    return bulk_verb.answer(options, Verb.STOP)
