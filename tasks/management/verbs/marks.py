"""Put executions on the queue from Harbor's own marks, or turn the queue into Harbor's marks.

Import looks at every key of the server, in pages. Before an export, stop the workers and beat, or pause
refreshing; their ticks would take the marks in again. Workers that were killed count as alive for some seconds,
and the export waits for that time. If an import or an export is interrupted, run it again: it takes the rest.
"""

from contextlib import suppress
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer, bar_shown
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.pipeline import legacy_marks


def _import(options: dict[str, Any]) -> Answer:
    if options["dry_run"]:
        found = legacy_marks.count_marks()
        said = f"{plural(found.taken, 'mark')} to take, {found.unreadable:,} that cannot be read."
        return Answer({"taken": found.taken, "unreadable": found.unreadable}, [said])
    with bar_shown("keys", legacy_marks.keys_of_server()) as show:
        done = legacy_marks.import_marks(show)
    note_of_queue(Word.IMPORT, done.taken)
    shown = [f"Took {plural(done.taken, 'mark')} onto the queue."]
    if done.unreadable:
        shown.append(f"Left {plural(done.unreadable, 'mark')} that cannot be read.")
    return Answer({"taken": done.taken, "unreadable": done.unreadable}, shown)


def _import_arguments(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count the marks")


def _export_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--set", action="store_true", dest="as_set", help="write the set of Harbor's main branch instead of keys"
    )
    parser.add_argument(
        "--force", action="store_true", help="export even if workers are alive and refreshing is not paused"
    )


def _export(options: dict[str, Any]) -> Answer:
    as_set = options["as_set"]
    with bar_shown("executions", legacy_marks.count_left(as_set=as_set)) as show:
        count = legacy_marks.export_marks(as_set=as_set, force=options["force"], on_page=show)
    note_of_queue(Word.EXPORT, count)
    data = {"moved": count, "left": legacy_marks.count_left(as_set=as_set)}
    shown = [f"Turned {plural(count, 'execution')} into marks of Harbor."]
    if data["left"]:
        shown.append(f"{plural(data['left'], 'mark')} of ours came meanwhile, or cannot be read: run it again.")
    return Answer(data, shown)


def note_of_queue(word: Word, count: int) -> None:
    """Write to the log of actions what was done with the queue, unless the database is away."""
    with suppress(DatabaseAway), absence_translated():
        note(at_terminal(), word, Kind.QUEUE, count=count)


HELP = "import or export the marks of Harbor"
VERBS = {
    "import": Subcommand("move Harbor's own marks to the queue", _import, _import_arguments),
    "export": Subcommand("turn the queue into Harbor's own marks", _export, _export_arguments),
}
