"""The options that choose executions, and the filter that they make."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.management.argument_types import age, positive_integer
from harbor_refresh.executions.management.output import Misused
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.status import Status


def arguments(parser: CommandParser) -> None:
    parser.add_argument("ids", nargs="*", type=positive_integer, metavar="ID", help="these executions")
    parser.add_argument("--quarantined", action="store_true", default=None, help="executions in quarantine")
    parser.add_argument("--has-jobs", action="store_true", default=None, help="executions with a job")
    parser.add_argument("--vendor", metavar="X", default="", help="executions of this vendor type")
    parser.add_argument("--vendor-id", metavar="ID", help="executions of the object with this number or text")
    parser.add_argument(
        "--status",
        action="append",
        choices=Status.values,
        metavar="S",
        default=[],
        help="executions with this status; may be repeated",
    )
    parser.add_argument("--trigger", metavar="T", default="", help="executions with this trigger")
    parser.add_argument(
        "--older-than",
        type=age,
        metavar="AGE",
        help="executions that started longer ago than this, such as 30m, 12h, 7d or 2w",
    )
    parser.add_argument(
        "--newer-than", type=age, metavar="AGE", help="executions that started more recently than this"
    )
    parser.add_argument(
        "--attribute",
        action="append",
        type=attribute,
        metavar="PATH=TEXT",
        default=[],
        help="executions with this text at the dotted path of extra_attrs; may be repeated",
    )


def chosen(options: dict[str, Any]) -> Filter:
    now = datetime.now(UTC)
    try:
        return Filter(
            vendor_type=options["vendor"],
            vendor_id=options["vendor_id"],
            statuses=options["status"],
            trigger=options["trigger"],
            started_after=options["newer_than"] and now - options["newer_than"],
            started_before=options["older_than"] and now - options["older_than"],
            attributes=dict(options["attribute"]),
            ids=options["ids"],
            quarantined=options["quarantined"],
            has_jobs=options["has_jobs"],
        )
    except Refused as exc:
        raise Misused(str(exc)) from exc


def attribute(text: str) -> tuple[str, str]:
    path, is_pair, value = text.partition("=")
    if not is_pair or not path:
        raise ArgumentTypeError(f"{text[:40]!r} is no attribute; takes PATH=TEXT, such as repository.name=nginx")
    return path, value
