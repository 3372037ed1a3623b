"""Take all marks that Harbor itself has written onto the queue. It looks at every key of the server, in pages.

If it is interrupted, run it again: it takes the rest.
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
from harbor_refresh.tasks.pipeline.legacy_marks import count_marks, import_marks
from harbor_refresh.tasks.queue.legacy_transfer import keys_of_server

HELP = "take Harbor's own marks onto the queue"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count the marks")


def answer(options: dict[str, Any]) -> Answer:
    if options["dry_run"]:
        found = count_marks()
        said = f"{plural(found.taken, 'mark')} to take, {found.unreadable:,} that cannot be read."
        return Answer({"taken": found.taken, "unreadable": found.unreadable}, [said])
    with page_bar("keys", keys_of_server()) as show:
        done = import_marks(show)
    with suppress(DatabaseAway), absence_translated():  # the import itself needs no database
        note(at_terminal(), Word.IMPORT, Kind.QUEUE, count=done.taken)
    shown = [f"Took {plural(done.taken, 'mark')} onto the queue."]
    if done.unreadable:
        shown.append(f"Left {plural(done.unreadable, 'mark')} that cannot be read.")
    return Answer({"taken": done.taken, "unreadable": done.unreadable}, shown)
