"""A command with verbs, one a module: HELP, arguments() and answer()."""

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from executions.management.output import absences_told, tell


class Family(BaseCommand):
    verbs: ClassVar[dict[str, Any]] = {}

    def add_arguments(self, parser: CommandParser) -> None:
        parsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for name, verb in self.verbs.items():
            sub = parsers.add_parser(name, help=verb.HELP, description=verb.__doc__)
            verb.arguments(sub)
            sub.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        with absences_told():
            answer = self.verbs[options["verb"]].answer(options)
        tell(answer, self.stdout, as_json=options["json"])
