"""Retry the failed jobs of all executions that the options choose, and the jobs of their chains."""

from typing import Any

from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.tasks.management.verbs.executions import bulk_verb

HELP = "try the failed jobs of executions once more"

arguments = bulk_verb.arguments


def answer(options: dict[str, Any]) -> Answer:
    return bulk_verb.answer(options, Verb.RETRY)
