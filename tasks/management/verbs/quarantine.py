"""List the executions in quarantine, or release them."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, noted
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
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
    with noted(at_terminal(), Word.RELEASE, Kind.QUARANTINE, _named(ids)) as entry:
        released = sorted(release(ids))
        entry.count, entry.skip = len(released), not released
    absent = sorted(set(ids) - set(released))
    failure = f"not in quarantine: {', '.join(map(str, absent))}" if absent else ""
    return Answer(
        {"released": released, "not_in_quarantine": absent},
        [f"Released {plural(len(released), 'execution')} for another try."],
        failure,
    )


def _named(ids: list[int]) -> str:
    return id_list(ids, at_most=SHOWN) if ids else ""


def _list() -> Answer:
    quarantined = list(Quarantine.objects.select_related("execution").order_by("pk"))
    data = {
        "quarantined": [
            {
                "execution_id": row.execution_id,
                "vendor": row.execution.vendor_type,
                "status": row.execution.status,
                "attempts": row.attempts,
                "at": row.at.isoformat(),
                "reason": row.reason,
            }
            for row in quarantined
        ]
    }
    if not quarantined:
        return Answer(data, ["No execution is in quarantine."])
    rows = [
        (
            str(row.execution_id),
            row.execution.vendor_type,
            row.execution.status,
            row.attempts,
            f"{row.at:%Y-%m-%d %H:%M:%S}",
            row.reason,
        )
        for row in quarantined
    ]
    columns = ("execution", "vendor", "status", "attempts", "since", "reason")
    return Answer(data, [table(columns, rows)])
