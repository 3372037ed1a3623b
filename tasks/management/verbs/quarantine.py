"""List who is in quarantine and why, or let them out."""

from typing import Any

from django.core.management.base import CommandParser

from executions.management.output import Answer, plural, table
from executions.models import Quarantine
from executions.quarantines import release
from tasks.management.verbs.numbers import at_least_one

HELP = "who is in quarantine and why; or the way out"


def arguments(parser: CommandParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--release", nargs="+", type=at_least_one, metavar="ID", help="let these out")
    group.add_argument("--release-all", action="store_true", help="let everybody out")


def answer(options: dict[str, Any]) -> Answer:
    if options["release"]:
        return _release(sorted(set(options["release"])))
    if options["release_all"]:
        return _release(list(Quarantine.objects.order_by("pk").values_list("pk", flat=True)))
    return _list()


def _release(ids: list[int]) -> Answer:
    released = sorted(release(ids))
    absent = sorted(set(ids) - set(released))
    failure = f"not in quarantine: {', '.join(map(str, absent))}" if absent else ""
    return Answer(
        {"released": released, "not_in_quarantine": absent},
        [f"Released {plural(len(released), 'execution')} for another try."],
        failure,
    )


def _list() -> Answer:
    inmates = list(Quarantine.objects.select_related("execution").order_by("pk"))
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
            for row in inmates
        ]
    }
    if not inmates:
        return Answer(data, ["Nobody is in quarantine."])
    rows = [
        (
            str(row.execution_id),
            row.execution.vendor_type,
            row.execution.status,
            row.attempts,
            f"{row.at:%Y-%m-%d %H:%M:%S}",
            row.reason,
        )
        for row in inmates
    ]
    columns = ("execution", "vendor", "status", "attempts", "since", "reason")
    return Answer(data, [table(columns, rows)])
