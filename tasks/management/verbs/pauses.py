"""Pause refreshing, or a queue of the broker, until it is resumed: its work waits, whatever restarts."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import at_terminal
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.operations.pauses import pause, resume


def _queue(parser: CommandParser) -> None:
    parser.add_argument(
        "queue",
        nargs="?",
        default=WORK,
        metavar="QUEUE",
        help=f"a queue of the broker; the default, {WORK}, means refreshing",
    )


def _queue_and_reason(parser: CommandParser) -> None:
    _queue(parser)
    parser.add_argument("--reason", default="", metavar="TEXT", help="the reason, shown on the page Queue")


def _pause(options: dict[str, Any]) -> Answer:
    queue = options["queue"]
    is_new = pause(queue, at_terminal(), options["reason"])
    said = f"{queue} is paused. `harbor unpause {queue}` ends it." if is_new else f"{queue} was paused before."
    return Answer({"queue": queue, "paused": True, "changed": is_new}, [said])


def _resume(options: dict[str, Any]) -> Answer:
    queue = options["queue"]
    was_paused = resume(queue, at_terminal())
    said = f"{queue} is resumed." if was_paused else f"{queue} was not paused."
    return Answer({"queue": queue, "paused": False, "changed": was_paused}, [said])


PAUSE = Subcommand(
    "pause refreshing, or the tracked jobs of a queue, until it is resumed", _pause, _queue_and_reason
)
UNPAUSE = Subcommand("resume refreshing, or the jobs of a queue", _resume, _queue)
