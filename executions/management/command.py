"""The bases of the commands: a command that prints an answer, one with verbs, and the types of their arguments."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from harbor_refresh.executions.conf.startup import OURS
from harbor_refresh.executions.management.output import Answer, errors_in_one_line, print_answer
from harbor_refresh.executions.status import MAX_ID

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
LONGEST = 36_500 * SECONDS["d"]


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
    """A verb of a command; one with `parts` has only these."""

    help: str
    answer: Callable[[dict[str, Any]], Answer] | None = None
    arguments: Sequence[Callable[[Any], object]] = ()
    parts: Mapping[str, "Subcommand"] = field(default_factory=dict)


class VerbCommand(AnswerCommand):
    verbs: ClassVar[Mapping[str, Subcommand]] = {}

    def add_arguments(self, parser: CommandParser) -> None:
        _add_verbs(parser, self.verbs, "verb")

    def answer(self, options: dict[str, Any]) -> Answer:
        answer: Answer = options["act"](options)
        return answer


def _add_verbs(parser: CommandParser, verbs: Mapping[str, Subcommand], dest: str) -> None:
    shown = "{" + ",".join(verbs) + "}"  # the error of a missing one names them, too
    parsers = parser.add_subparsers(dest=dest, required=True, metavar=shown)
    for name, verb in verbs.items():
        sub = parsers.add_parser(name, help=verb.help, description=verb.help)
        if verb.parts:
            _add_verbs(sub, verb.parts, "part")
        else:
            for add_to in verb.arguments:
                add_to(sub)
            sub.set_defaults(act=verb.answer)
            sub.add_argument("--json", action="store_true", help="print JSON instead of a table")


def argument(*names: str, **options: Any) -> Callable[[Any], object]:
    """Return what adds this argument to a parser, or to a group of one."""
    return lambda parser: parser.add_argument(*names, **options)


def one_of(*arguments: Callable[[Any], object], required: bool = False) -> Callable[[CommandParser], None]:
    """Return what adds these arguments, of which one may be given."""

    def add_to(parser: CommandParser) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for add in arguments:
            add(group)

    return add_to


def count(at_least: int, at_most: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        number = int(text) if text.isdecimal() and len(text) <= len(str(MAX_ID)) else -1
        if not at_least <= number <= at_most:
            raise ArgumentTypeError(f"got {text[:40]!r}, takes a whole number from {at_least:,} to {at_most:,}")
        return number

    return whole_number


positive_integer = count(1, MAX_ID)


def age(text: str) -> timedelta:
    """Read an age such as `30d`: a whole number and s, m, h, d or w."""
    found = re.fullmatch(r"([1-9]\d{0,9})([smhdw])", text.strip())
    seconds = int(found[1]) * SECONDS[found[2]] if found else LONGEST + 1
    if seconds > LONGEST:
        raise ArgumentTypeError(f"got {text[:40]!r}, takes an age such as 12h, 30d or 8w, of 36,500 days at most")
    return timedelta(seconds=seconds)
