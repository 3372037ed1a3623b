"""Mark executions: put them on the queue, whatever their status."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.management.output import Answer, Misused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.id_list import id_list
from harbor_refresh.tasks.management.verbs.argument_types import positive_integer, vendor_type
from harbor_refresh.tasks.pipeline.marks import mark
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.members import member
from harbor_refresh.tasks.queue.sets import pages

HELP = "put executions on the queue, by id, vendor or status"

PAGE = 10_000
SHOWN = 20


def arguments(parser: CommandParser) -> None:
    parser.add_argument("ids", nargs="*", type=positive_integer, metavar="ID", help="these executions")
    parser.add_argument("--vendor", type=vendor_type, metavar="X", help="executions of this vendor type")
    parser.add_argument("--status", choices=Status.values, help="executions with this stored status")
    parser.add_argument("--all-unfinished", action="store_true", help="executions without an end")


def answer(options: dict[str, Any]) -> Answer:
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
