"""Release the claims of dead nodes now."""

from typing import Any

from django.core.management.base import CommandParser

from executions.management.output import Answer, plural
from tasks.pipeline.recovery import recover

HELP = "release the claims of dead nodes"


def arguments(parser: CommandParser) -> None:
    pass


def answer(options: dict[str, Any]) -> Answer:
    count = recover()
    return Answer({"recovered": count}, [f"Recovered {plural(count, 'execution')}."])
