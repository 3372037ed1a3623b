"""The bases of the commands: a command that prints an answer, and a command with verbs."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from harbor_refresh.executions.checks import OURS
from harbor_refresh.executions.management.output import Answer, errors_in_one_line, print_answer


class AnswerCommand(BaseCommand):
    """A command that prints its answer as a table, or as JSON with `--json`."""

    requires_system_checks: tuple[str, ...] = (OURS,)  # all would import every page of the service

    def answer(self, options: dict[str, Any]) -> Answer:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        with errors_in_one_line():
            answer = self.answer(options)
        print_answer(answer, self.stdout, as_json=options["json"])


@dataclass(frozen=True)
class Subcommand:
    """A verb beside others in one module."""

    HELP: str
    answer: Callable[[dict[str, Any]], Answer]
    arguments: Callable[[CommandParser], None] = lambda parser: None


class VerbCommand(AnswerCommand):
    """A command with verbs. Each verb is a Subcommand, or a module with HELP, arguments() and answer(), or with
    HELP and VERBS."""

    verbs: ClassVar[dict[str, Any]] = {}

    def add_arguments(self, parser: CommandParser) -> None:
        _add_verbs(parser, self.verbs, "verb")

    def answer(self, options: dict[str, Any]) -> Answer:
        answer: Answer = options["act"](options)
        return answer


def _add_verbs(parser: CommandParser, verbs: dict[str, Any], dest: str) -> None:
    parsers = parser.add_subparsers(dest=dest, required=True, metavar=dest.upper())
    for name, verb in verbs.items():
        text = verb.__doc__ if isinstance(verb, ModuleType) else verb.HELP
        sub = parsers.add_parser(name, help=verb.HELP, description=text)
        if hasattr(verb, "VERBS"):
            _add_verbs(sub, verb.VERBS, "part")
        else:
            verb.arguments(sub)
            sub.set_defaults(act=verb.answer)
            sub.add_argument("--json", action="store_true", help="print JSON instead of a table")
