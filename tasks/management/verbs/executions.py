"""List executions, and show one: its tasks by status, and what its running jobs said last."""

import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer, moment, table
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.queries.progress import progress
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.queries import check_in_of, running_jobs
from harbor_refresh.tasks.jobs.running.handle import CheckIn
from harbor_refresh.tasks.management.verbs import filter_options
from harbor_refresh.tasks.models import Job

#: What JSON has of an execution: the fields that the API answers with.
FIELDS = (
    *("id", "vendor_type", "vendor_id", "vendor_key", "status", "status_message", "trigger", "extra_attrs"),
    *("start_time", "update_time", "end_time", "revision"),
)
MOST_RUNNING = 50


def _list(options: dict[str, Any]) -> Answer:
    limit = options["limit"]
    found = list(filter_options.chosen(options).apply(Execution.objects.order_by("-pk"))[: limit + 1])
    shown, has_more = found[:limit], len(found) > limit
    vendor_keys.read_for(shown)
    data = {"executions": [_fields(one) for one in shown], "has_more": has_more}
    if not shown:
        return Answer(data, ["No execution is chosen."])
    rows = [
        (
            str(one.pk),
            one.status,
            one.vendor_type,
            one.vendor_key if one.vendor_id < 0 else one.vendor_id,
            one.trigger,
            moment(one.start_time),
            moment(one.end_time),
        )
        for one in shown
    ]
    columns = ("execution", "status", "vendor", "vendor id", "trigger", "started", "ended")
    more = [f"The newest {plural(limit, 'execution')}; there are more."] if has_more else []
    return Answer(data, [table(columns, rows), *more])


def _list_arguments(parser: CommandParser) -> None:
    filter_options.arguments(parser)
    parser.add_argument("--limit", type=positive_integer, default=50, metavar="N", help="show the N newest (50)")


def _show(options: dict[str, Any]) -> Answer:
    execution = Execution.objects.filter(pk=options["id"]).first()
    if execution is None:
        raise NoSuchExecution(options["id"])
    if options["running"]:
        return _running(running_jobs(execution.pk, MOST_RUNNING))
    found = progress(execution.pk)
    reason = Quarantine.objects.filter(pk=execution.pk).values_list("reason", flat=True).first()
    data = _fields(execution) | {
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
        ("started", moment(execution.start_time)),
        ("ended", moment(execution.end_time)),
        ("tasks", f"{found.total:,}: {counts}" if counts else "none"),
        ("progress", f"{int(found.share * 100)}%"),
        ("quarantine", reason or ""),
    ]
    return Answer(data, [table(("", ""), [row for row in rows if row[1]])])


def _show_arguments(parser: CommandParser) -> None:
    parser.add_argument("id", type=positive_integer, metavar="ID", help="the execution")
    parser.add_argument(
        "--running",
        action="store_true",
        help="list its running jobs instead, with the progress and the last message of each",
    )


def _fields(execution: Execution) -> dict[str, Any]:
    return {name: getattr(execution, name) for name in FIELDS}


def _running(jobs: list[Job]) -> Answer:
    data, rows = [], []
    for job in jobs:
        said = check_in_of(job) or CheckIn()
        ago = (timezone.now() - job.heard_at).total_seconds() if job.heard_at else 0
        one = {"task_id": job.task_id, "name": job.name, "message": said.message, "done": said.done, "of": said.of}
        data.append({**one, "seconds_ago": round(max(0, ago), 1)})
        done = "" if said.of is None else f"{said.done:,} of {said.of:,}"
        rows.append((str(job.task_id), job.name, done, said.message, f"{data[-1]['seconds_ago']:g} s ago"))
    if not rows:
        return Answer({"running": []}, ["No job runs now."])
    more = [f"The first {plural(MOST_RUNNING, 'job')}; there may be more."] * (len(rows) == MOST_RUNNING)
    return Answer({"running": data}, [table(("task", "job", "done", "message", "last heard of"), rows), *more])


LIST = Subcommand("list the executions that match the options, the newest first", _list, _list_arguments)
SHOW = Subcommand("show one execution, its tasks by status, and the share that has ended", _show, _show_arguments)
