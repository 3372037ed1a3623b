"""List the actions on many executions, the newest first, or show the given ones; stop one."""

from typing import Any

from django.core.management.base import CommandParser

from executions.bulk import find, stop_action
from executions.management.output import Answer, table
from executions.models import Action
from tasks.management.verbs.argument_types import positive_integer
from tasks.management.verbs.executions.action_data import as_data

HELP = "list the actions on many executions and how far they are; stop one"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("ids", nargs="*", type=positive_integer, metavar="ACTION", help="show only these")
    parser.add_argument("--limit", type=positive_integer, default=20, metavar="N", help="show the N newest (20)")
    parser.add_argument("--stop", type=positive_integer, metavar="ACTION", help="stop this one")


def answer(options: dict[str, Any]) -> Answer:
    if options["stop"]:
        found = [stop_action(options["stop"])]
    elif options["ids"]:
        found = [find(pk) for pk in options["ids"]]
    else:
        found = list(Action.objects.order_by("-pk")[: options["limit"]])
    data = {"actions": [as_data(action) for action in found]}
    if not found:
        return Answer(data, ["There are no actions."])
    columns = ("action", "verb", "state", "total", "done", "changed", "skipped", "failed", "asked for", "error")
    return Answer(data, [table(columns, map(_row, found))])


def _row(action: Action) -> tuple[Any, ...]:
    state = "stopping" if action.stop_asked and not action.has_ended else action.state
    total = "?" if action.total is None else f"{action.total:,}"
    counts = (action.done, action.changed, action.skipped, action.failed)
    asked = f"{action.created_at:%Y-%m-%d %H:%M:%S} {action.requested_from} {action.requested_by}".rstrip()
    return (str(action.pk), action.verb, state, total, *counts, asked, action.error)
