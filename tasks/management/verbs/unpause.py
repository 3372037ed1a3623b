"""Resume refreshing, or a queue of the broker."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.audit import at_terminal
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.celery_queues import WORK
from harbor_refresh.tasks.pauses.pauses import resume

HELP = "resume refreshing, or a queue of the broker"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("queue", nargs="?", default=WORK, metavar="QUEUE", help=f"{WORK} (default): refreshing")


def answer(options: dict[str, Any]) -> Answer:
    queue = options["queue"]
    was_paused = resume(queue, at_terminal())
    said = f"{queue} is resumed." if was_paused else f"{queue} was not paused."
    return Answer({"queue": queue, "paused": False, "changed": was_paused}, [said])
