"""`manage.py alive worker|beat`: for probes that restart a worker or a beat which does not do its work any
more."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.monitoring.liveness import JUDGES, as_data


class Command(AnswerCommand):
    help = "Exit with 1 if the workers of this host, or beat, no longer work. For liveness probes."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=tuple(JUDGES), help="the workers of this host, or beat")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def answer(self, options: dict[str, Any]) -> Answer:
        verdict = JUDGES[options["what"]]()
        shown = [] if not verdict.is_alive else [f"{verdict.why}."]
        return Answer(as_data(verdict), shown, "" if verdict.is_alive else f"{verdict.why}.")
