"""Put executions on the queue: by hand, or from Harbor's own marks; or turn the queue into Harbor's marks.

Import looks at every key of the server, in pages. Before an export, stop the workers and beat, or pause
refreshing; their ticks would take the marks in again. Workers that were killed count as alive for some seconds,
and the export waits for that time. If an import or an export is interrupted, run it again: it takes the rest.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable
from harbor_refresh.executions.management.argument_types import positive_integer, vendor_type
from harbor_refresh.executions.management.bar import bar_shown
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer, Misused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.pipeline.legacy_marks import (
    count_left,
    count_marks,
    export_marks,
    import_marks,
    keys_of_server,
)
from harbor_refresh.tasks.pipeline.marks import mark
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.members import member
from harbor_refresh.tasks.queue.sets import pages

PAGE = 10_000
SHOWN = 20


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("ids", nargs="*", type=positive_integer, metavar="ID", help="these executions")
    parser.add_argument("--vendor", type=vendor_type, metavar="X", help="executions of this vendor type")
    parser.add_argument("--status", choices=Status.values, help="executions with this stored status")
    parser.add_argument("--all-unfinished", action="store_true", help="executions that have not ended")


def _add(options: dict[str, Any]) -> Answer:
    ids: list[int] = sorted(set(options["ids"]))
    by_kind = options["vendor"] or options["status"] or options["all_unfinished"]
    if bool(ids) == bool(by_kind):
        raise Misused(
            "name executions by their ids, or by --vendor, --status, --all-unfinished "
            "(together they narrow), and not by both"
        )
    if not refresh_settings().in_process:
        execution_queue().stats()  # raises before anything is marked, if Redis is away
    found, unknown = _mark_ids(ids) if ids else (_mark_all(_chosen(options)), [])
    note(at_terminal(), Word.MARK, Kind.EXECUTION, _named(ids, options), count=found)
    shown = [f"Marked {plural(found, 'execution')}."]
    failure = f"there is no execution {id_list(unknown, at_most=SHOWN)}" if unknown else ""
    return Answer({"marked": found, "unknown": unknown}, shown, failure)


def _named(ids: Sequence[int], options: dict[str, Any]) -> str:
    if ids:
        return id_list(ids, at_most=SHOWN)
    words = (options["vendor"], options["status"], "unfinished" if options["all_unfinished"] else "")
    return ", ".join(filter(None, words))


def _mark_ids(ids: Sequence[int]) -> tuple[int, list[int]]:
    known = dict(Execution.objects.filter(pk__in=ids).values_list("pk", "vendor_type"))
    _mark([member(pk, vendor) for pk, vendor in sorted(known.items())])
    return len(known), [pk for pk in ids if pk not in known]


def _chosen(options: dict[str, Any]) -> Iterator[str]:
    chosen = Execution.objects.unfinished() if options["all_unfinished"] else Execution.objects.all()
    if options["vendor"]:
        chosen = chosen.filter(vendor_type=options["vendor"])
    if options["status"]:
        chosen = chosen.filter(status=options["status"])
    rows = chosen.values_list("pk", "vendor_type").iterator(chunk_size=PAGE)
    return (member(pk, vendor) for pk, vendor in rows)


def _mark_all(members: Iterator[str]) -> int:
    count = 0
    for page in pages(members, PAGE):
        _mark(page)
        count += len(page)
    return count


def _mark(members: Sequence[str]) -> None:
    if not mark(members):
        raise QueueUnavailable("Redis went away meanwhile, some executions are not marked")


def _import_arguments(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count the marks")


def _import(options: dict[str, Any]) -> Answer:
    if options["dry_run"]:
        found = count_marks()
        said = f"{plural(found.taken, 'mark')} to take, {found.unreadable:,} that cannot be read."
        return Answer({"taken": found.taken, "unreadable": found.unreadable}, [said])
    with bar_shown("keys", keys_of_server()) as show:
        done = import_marks(show)
    note_of_queue(Word.IMPORT, done.taken)
    shown = [f"Took {plural(done.taken, 'mark')} onto the queue."]
    if done.unreadable:
        shown.append(f"Left {plural(done.unreadable, 'mark')} that cannot be read.")
    return Answer({"taken": done.taken, "unreadable": done.unreadable}, shown)


def _export_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--set", action="store_true", dest="as_set", help="write the set of Harbor's main branch instead of keys"
    )
    parser.add_argument(
        "--force", action="store_true", help="export even if workers are alive and refreshing is not paused"
    )


def _export(options: dict[str, Any]) -> Answer:
    as_set = options["as_set"]
    with bar_shown("executions", count_left(as_set=as_set)) as show:
        count = export_marks(as_set=as_set, force=options["force"], on_page=show)
    note_of_queue(Word.EXPORT, count)
    data = {"moved": count, "left": count_left(as_set=as_set)}
    shown = [f"Turned {plural(count, 'execution')} into marks of Harbor."]
    if data["left"]:
        shown.append(f"{plural(data['left'], 'mark')} of ours came meanwhile, or cannot be read: run it again.")
    return Answer(data, shown)


def note_of_queue(word: Word, count: int) -> None:
    """Write to the log of actions what was done with the queue, unless the database is away."""
    with suppress(DatabaseAway), absence_translated():
        note(at_terminal(), word, Kind.QUEUE, count=count)


HELP = "put executions on the queue, and import or export the marks of Harbor"
VERBS = {
    "add": Subcommand("put executions on the queue, by id, vendor or status", _add, _add_arguments),
    "import": Subcommand("move Harbor's own marks to the queue", _import, _import_arguments),
    "export": Subcommand("turn the queue into Harbor's own marks", _export, _export_arguments),
}
