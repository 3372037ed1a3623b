"""List the executions in quarantine, or release them."""

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import F

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, noted
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, moment, table
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.executions.text import id_list, plural

SHOWN = 10
HELP = "list the executions in quarantine with their reasons, or release them"


def arguments(parser: CommandParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--release", nargs="+", type=positive_integer, metavar="ID", help="release these executions"
    )
    group.add_argument("--release-all", action="store_true", help="release all executions")


def answer(options: dict[str, Any]) -> Answer:
    if options["release"]:
        return _release(sorted(set(options["release"])))
    if options["release_all"]:
        return _release(list(Quarantine.objects.order_by("pk").values_list("pk", flat=True)))
    return _list()


def _release(ids: list[int]) -> Answer:
    with noted(at_terminal(), Word.RELEASE, Kind.QUARANTINE, id_list(ids, at_most=SHOWN)) as entry:
        released = sorted(release(ids))
        entry.count, entry.skip = len(released), not released
    absent = sorted(set(ids) - set(released))
    failure = f"not in quarantine: {', '.join(map(str, absent))}" if absent else ""
    return Answer(
        {"released": released, "not_in_quarantine": absent},
        [f"Released {plural(len(released), 'execution')} for another try."],
        failure,
    )


def _list() -> Answer:
    of_execution = {"vendor": F("execution__vendor_type"), "status": F("execution__status")}
    quarantines: Any = Quarantine.objects.order_by("pk")
    found = list(quarantines.values("execution_id", "attempts", "at", "reason", **of_execution))
    rows = [
        (str(one["execution_id"]), one["vendor"], one["status"], one["attempts"], moment(one["at"]), one["reason"])
        for one in found
    ]
    columns = ("execution", "vendor", "status", "attempts", "since", "reason")
    shown = table(columns, rows) if rows else "No execution is in quarantine."
    return Answer({"quarantined": found}, [shown])
