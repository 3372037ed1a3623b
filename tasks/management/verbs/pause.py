"""Pause refreshing, or a queue of the broker: its work waits until it is resumed, whatever restarts meanwhile."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.audit import at_terminal
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.celery_queues import WORK
from harbor_refresh.tasks.pauses.pauses import pause

HELP = "pause refreshing, or a queue of the broker, until it is resumed"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("queue", nargs="?", default=WORK, metavar="QUEUE", help=f"{WORK} (default): refreshing")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; it is shown everywhere")


def answer(options: dict[str, Any]) -> Answer:
    queue = options["queue"]
    is_new = pause(queue, at_terminal(), options["reason"])
    said = f"{queue} is paused. `harbor unpause {queue}` ends it." if is_new else f"{queue} was paused before."
    return Answer({"queue": queue, "paused": True, "changed": is_new}, [said])
