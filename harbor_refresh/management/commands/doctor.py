"""`manage.py doctor`: check settings, servers, workers, beat and statuses; say what is wrong and what to type."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.doctor.check import Level
from harbor_refresh.doctor.examination import CHECKS, examine
from harbor_refresh.doctor.output import as_data, as_text
from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.text import plural


def check_name(text: str) -> str:
    if not any(check.name.startswith(text) for check in CHECKS):
        raise ArgumentTypeError(f"got {text[:40]!r}, takes a check or the beginning of one, such as redis")
    return text


class Command(AnswerCommand):
    help = (
        "Check settings, PostgreSQL, Redis, the broker, clocks, beat, workers and statuses. Say for each "
        "problem what is wrong and what to type. Changes nothing. Exits with 1 if there is an error."
    )
    requires_system_checks = ()  # they are among the checks

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON instead of text")
        parser.add_argument(
            "--only",
            type=check_name,
            action="append",
            metavar="CHECK",
            help="these checks, such as redis or beat.alive",
        )
        parser.add_argument(
            "--fail-level",
            choices=[str(level) for level in Level],
            default=str(Level.ERROR),
            help="exit with 1 from this level on (error)",
        )

    def answer(self, options: dict[str, Any]) -> Answer:
        chosen = [
            check
            for check in CHECKS
            if not options["only"]
            or check.answers_for
            or any(check.name.startswith(one) for one in options["only"])
        ]
        results = list(examine(chosen))
        found = [problem for result in results for problem in result.problems]
        failing = [one for one in found if one.level == Level.ERROR or options["fail_level"] == Level.WARNING]
        return Answer(as_data(results), as_text(results), plural(len(failing), "problem") if failing else "")
