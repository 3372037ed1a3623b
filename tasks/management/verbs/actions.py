"""List the actions on many executions, the newest first, or show the given ones; stop one, or go on with one."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, noted
from harbor_refresh.executions.actions.bulk import find, resume, stop_action
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import Origin
from harbor_refresh.tasks.management.verbs.action_data import answer_of, as_data
from harbor_refresh.tasks.management.verbs.action_run import run_to_end

HELP = "list the actions on many executions and how far they are; stop one, or go on with one"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("ids", nargs="*", type=positive_integer, metavar="ACTION", help="show only these")
    parser.add_argument("--limit", type=positive_integer, default=20, metavar="N", help="show the N newest (20)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--stop", type=positive_integer, metavar="ACTION", help="stop this one")
    which.add_argument(
        "--resume",
        type=positive_integer,
        metavar="ACTION",
        help="go on, in this process, with this one, which was stopped, has failed or lost its process",
    )


def answer(options: dict[str, Any]) -> Answer:
    if options["resume"]:
        with noted(at_terminal(), Word.RESUME, Kind.ACTION, options["resume"]):
            action = resume(options["resume"], Origin.TERMINAL)
        return answer_of(run_to_end(action))
    if options["stop"]:
        with noted(at_terminal(), Word.STOP, Kind.ACTION, options["stop"]):
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
