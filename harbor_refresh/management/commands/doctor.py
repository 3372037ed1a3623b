"""`manage.py doctor`: check settings, servers, workers, beat and statuses; say what is wrong and what to type."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.output import STYLES, answer_of
from harbor_refresh.tasks.checks.registry import Shown, examine, selection


def check_name(text: str) -> str:
    if not any(check.id.startswith(text) for check in selection(Shown.DOCTOR)):
        raise ArgumentTypeError(f"got {text[:40]!r}, takes a check or the beginning of one, such as redis")
    return text


class Command(AnswerCommand):
    help = (
        "Check settings, PostgreSQL, Redis, the broker, beat, workers and statuses. Say for each "
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
            help="run only the checks whose names begin with this, such as redis; may be repeated",
        )
        parser.add_argument(
            "--fail-level",
            choices=list(STYLES),
            default="error",
            help="the lowest level at which to exit with 1 (default: error)",
        )

    def answer(self, options: dict[str, Any]) -> Answer:
        only = tuple(options["only"] or ("",))
        chosen = [one for one in selection(Shown.DOCTOR) if one.answers_for or one.id.startswith(only)]
        return answer_of(list(examine(chosen, Facts())), options["fail_level"])
