"""Go on with an action that was stopped, has failed or lost its process, in this process."""

from typing import Any

from django.core.management.base import CommandParser

from executions.bulk import resume
from executions.management.output import Answer
from executions.models.action import Origin
from tasks.management.verbs.argument_types import positive_integer
from tasks.management.verbs.executions.action_data import answer_of
from tasks.management.verbs.executions.action_run import run_to_end

HELP = "go on with an action that was stopped or has failed"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("action", type=positive_integer, metavar="ACTION", help="the number of the action")


def answer(options: dict[str, Any]) -> Answer:
    return answer_of(run_to_end(resume(options["action"], Origin.TERMINAL)))
