"""`manage.py alive worker|beat`: for probes that restart a worker or a beat that no longer works."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.monitoring.liveness import JUDGES


class Command(AnswerCommand):
    help = "Exit with 1 if the workers of this host, or beat, no longer work. For liveness probes."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=tuple(JUDGES), help="the workers of this host, or beat")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def answer(self, options: dict[str, Any]) -> Answer:
        is_alive, why = JUDGES[options["what"]]()
        return Answer({"alive": is_alive, "why": why}, [f"{why}."] * is_alive, "" if is_alive else f"{why}.")
