"""Retry the failed jobs of all executions that the options choose, and the jobs of their chains."""

from typing import Any

from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.tasks.management.verbs.executions import bulk_verb
from harbor_refresh.tasks.management.verbs.jobs import retry as retry_of_ids

HELP = "try the failed jobs of executions once more"

arguments = bulk_verb.arguments


def answer(options: dict[str, Any]) -> Answer:
    if options["ids"]:
        bulk_verb.refuse_filter(options)
        return retry_of_ids.answer(options)
    return bulk_verb.answer(options, Verb.RETRY)
