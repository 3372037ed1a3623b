"""Release the claims of dead nodes now."""

from contextlib import suppress
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.pipeline.recovery import recover

HELP = "release the claims of dead nodes"


def arguments(parser: CommandParser) -> None:
    pass


def answer(options: dict[str, Any]) -> Answer:
    count = recover()
    with suppress(DatabaseAway), absence_translated():  # recover itself needs no database
        note(at_terminal(), Word.RECOVER, Kind.QUEUE, count=count)
    return Answer({"recovered": count}, [f"Recovered {plural(count, 'execution')}."])
