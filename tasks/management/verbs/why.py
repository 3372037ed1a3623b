"""Say why the status of an execution is not what its tasks say, and what to do; or why a job does not run. Changes
nothing."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.tasks.management.verbs import why_job
from harbor_refresh.tasks.pipeline.diagnosis import diagnose

HELP = "say where an execution is, why it is not refreshed, and what to do; or why a job does not run"


def arguments(parser: CommandParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("id", nargs="?", type=positive_integer, metavar="ID", help="the execution")
    which.add_argument("--task", type=positive_integer, metavar="TASK", help=why_job.HELP)


def answer(options: dict[str, Any]) -> Answer:
    if options["task"]:
        return why_job.answer(options)
    found = diagnose(options["id"])
    row, where = found.comparison, found.where
    data = {
        "execution_id": row.execution_id,
        "vendor": row.vendor_type,
        "status": row.status,
        "true_status": row.true_status,
        "is_right": row.is_right,
        "is_locked": row.is_locked,
        "quarantine": row.reason,
        "on_the_queue": where.is_queued if where else None,
        "failures": where.failures if where else None,
        "claims": [
            {"node": token.node, "state": "waits" if token.is_waiting else "works"} for token in where.tokens
        ]
        if where
        else None,
        "findings": list(found.findings),
    }
    rows = [
        ("execution", f"{row.execution_id} {row.vendor_type}"),
        ("status", row.status),
        ("by its tasks", row.true_status or "it has no tasks"),
    ]
    return Answer(data, [table(("", ""), rows), *found.findings])
