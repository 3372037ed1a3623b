"""`manage.py refresh_queue`: look at the queue, and act on it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from executions.management.output import absences_told, tell
from executions.management.verbs import claims, mark, quarantine, recover, stats

VERBS = {
    "stats": stats,
    "claims": claims,
    "mark": mark,
    "recover": recover,
    "quarantine": quarantine,
}


class Command(BaseCommand):
    help = "Look at the queue of executions to be refreshed, and act on it."

    def add_arguments(self, parser: CommandParser) -> None:
        parsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for name, verb in VERBS.items():
            sub = parsers.add_parser(name, help=verb.HELP, description=verb.__doc__)
            verb.arguments(sub)
            sub.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        with absences_told():
            answer = VERBS[options["verb"]].answer(options)
        tell(answer, self.stdout, as_json=options["json"])
