"""Show one execution: its fields, its tasks by status, and the share that has ended."""

import json
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.queries.progress import progress
from harbor_refresh.tasks.management.verbs import running_jobs
from harbor_refresh.tasks.management.verbs.execution_data import as_data, shown

HELP = "show one execution, its tasks by status, and the share that has ended"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("id", type=positive_integer, metavar="ID", help="the execution")
    parser.add_argument("--running", action="store_true", help=running_jobs.HELP)


def answer(options: dict[str, Any]) -> Answer:
    execution = Execution.objects.filter(pk=options["id"]).first()
    if execution is None:
        raise NoSuchExecution(options["id"])
    if options["running"]:
        return running_jobs.answer(options)
    found = progress(execution.pk)
    reason = Quarantine.objects.filter(pk=execution.pk).values_list("reason", flat=True).first()
    data = as_data(execution) | {
        "counts": found.counts,
        "tasks": found.total,
        "progress": found.share,
        "quarantine": reason,
    }
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(found.counts.items()))
    rows = [
        ("execution", str(execution.pk)),
        ("vendor", f"{execution.vendor_type} {execution.vendor_key}"),
        ("status", execution.status),
        ("message", execution.status_message),
        ("trigger", execution.trigger),
        ("attributes", json.dumps(execution.extra_attrs, ensure_ascii=False)),
        ("started", shown(execution.start_time)),
        ("ended", shown(execution.end_time)),
        ("tasks", f"{found.total:,}: {counts}" if counts else "none"),
        ("progress", f"{int(found.share * 100)}%"),
        ("quarantine", reason or ""),
    ]
    return Answer(data, [table(("", ""), [row for row in rows if row[1]])])
