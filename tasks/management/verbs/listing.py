"""List executions, the newest first."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.management.verbs import filter_options
from harbor_refresh.tasks.management.verbs.execution_data import as_data
from harbor_refresh.tasks.management.verbs.execution_data import shown as moment_shown

HELP = "list the executions that match the options, the newest first"


def arguments(parser: CommandParser) -> None:
    filter_options.arguments(parser)
    parser.add_argument("--limit", type=positive_integer, default=50, metavar="N", help="show the N newest (50)")


def answer(options: dict[str, Any]) -> Answer:
    limit = options["limit"]
    found = list(filter_options.chosen(options).apply(Execution.objects.order_by("-pk"))[: limit + 1])
    shown, has_more = found[:limit], len(found) > limit
    vendor_keys.read_for(shown)
    data = {"executions": [as_data(one) for one in shown], "has_more": has_more}
    if not shown:
        return Answer(data, ["No execution is chosen."])
    rows = [
        (
            str(one.pk),
            one.status,
            one.vendor_type,
            one.vendor_key if one.vendor_id < 0 else one.vendor_id,
            one.trigger,
            moment_shown(one.start_time),
            moment_shown(one.end_time),
        )
        for one in shown
    ]
    columns = ("execution", "status", "vendor", "vendor id", "trigger", "started", "ended")
    more = [f"The newest {plural(limit, 'execution')}; there are more."] if has_more else []
    return Answer(data, [table(columns, rows), *more])
