"""Turn all executions that wait or are in flight back into Harbor's own marks, so that Harbor can go on from here.

Stop the workers and beat first, or pause refreshing: their ticks would take the marks in again. Workers that were
killed count as alive for some seconds, and the command waits for that time. If it is interrupted, run it again: it
turns the rest.

Attached to a running Harbor, the queue is Harbor's set, so --set turns the claims alone.
"""

from contextlib import suppress
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.management.verbs.page_bar import page_bar
from harbor_refresh.tasks.pipeline.legacy_marks import count_left, export_marks

HELP = "turn what is on the queue back into Harbor's own marks"


def arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--set", action="store_true", dest="as_set", help="write the set of Harbor's main branch, and not the keys"
    )
    parser.add_argument("--force", action="store_true", help="export although workers are alive and not paused")


def answer(options: dict[str, Any]) -> Answer:
    as_set = options["as_set"]
    with page_bar("executions", count_left(as_set=as_set)) as show:
        count = export_marks(as_set=as_set, force=options["force"], on_page=show)
    with suppress(DatabaseAway), absence_translated():  # the export itself needs no database
        note(at_terminal(), Word.EXPORT, Kind.QUEUE, count=count)
    data = {"moved": count, "left": count_left(as_set=as_set)}
    shown = [f"Turned {plural(count, 'execution')} into marks of Harbor."]
    if data["left"]:
        shown.append(f"{plural(data['left'], 'mark')} of ours came meanwhile, or cannot be read: run it again.")
    return Answer(data, shown)
