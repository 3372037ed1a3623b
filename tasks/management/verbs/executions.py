"""The verbs that list executions and show one; and the options that choose executions."""

import json
from argparse import ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from harbor_refresh.executions.errors import NoSuchExecution, Refused
from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.management.command import Subcommand, age, positive_integer
from harbor_refresh.executions.management.output import Answer, Misused, moment, table
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.queries.progress import progress
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.queries import check_in_of, running_jobs
from harbor_refresh.tasks.jobs.running.handle import CheckIn

#: What JSON has of an execution: the fields that the API answers with.
FIELDS = (
    *("id", "vendor_type", "vendor_id", "vendor_key", "status", "status_message", "trigger", "extra_attrs"),
    *("start_time", "update_time", "end_time", "revision"),
)
MOST_RUNNING = 50


def _pair(text: str) -> tuple[str, str]:
    path, is_pair, value = text.partition("=")
    if not is_pair or not path:
        raise ArgumentTypeError(f"{text[:40]!r} is no attribute; takes PATH=TEXT, such as repository.name=nginx")
    return path, value


def add_filter(parser: CommandParser) -> None:
    def add(name: str, help: str, **how: Any) -> None:
        parser.add_argument(name, help=help, **how)

    add("ids", "these executions", nargs="*", type=positive_integer, metavar="ID")
    add("--quarantined", "executions in quarantine", action="store_true", default=None)
    add("--has-jobs", "executions with a job", action="store_true", default=None)
    add("--vendor", "executions of this vendor type", metavar="X", default="")
    add("--vendor-id", "executions of the object with this number or text", metavar="ID")
    several = {"action": "append", "default": []}
    text = "executions with this status; may be repeated"
    add("--status", text, choices=Status.values, metavar="S", **several)
    add("--trigger", "executions with this trigger", metavar="T", default="")
    text = "executions that started longer ago than this, such as 30m, 12h, 7d or 2w"
    add("--older-than", text, type=age, metavar="AGE")
    add("--newer-than", "executions that started more recently than this", type=age, metavar="AGE")
    text = "executions with this text at the dotted path of extra_attrs; may be repeated"
    add("--attribute", text, type=_pair, metavar="PATH=TEXT", **several)


def chosen(options: dict[str, Any]) -> Filter:
    now = datetime.now(UTC)
    try:
        return Filter(
            vendor_type=options["vendor"],
            statuses=options["status"],
            started_after=options["newer_than"] and now - options["newer_than"],
            started_before=options["older_than"] and now - options["older_than"],
            attributes=dict(options["attribute"]),
            **{name: options[name] for name in ("vendor_id", "trigger", "ids", "quarantined", "has_jobs")},
        )
    except Refused as exc:
        raise Misused(str(exc)) from exc


def _list_arguments(parser: CommandParser) -> None:
    add_filter(parser)
    parser.add_argument("--limit", type=positive_integer, default=50, metavar="N", help="show the N newest (50)")


def _list(options: dict[str, Any]) -> Answer:
    limit = options["limit"]
    found = list(chosen(options).apply(Execution.objects.order_by("-pk"))[: limit + 1])
    shown, has_more = found[:limit], len(found) > limit
    vendor_keys.read_for(shown)
    data = {"executions": [_fields(one) for one in shown], "has_more": has_more}
    if not shown:
        return Answer(data, ["No execution is chosen."])
    rows = []
    for one in shown:
        of = one.vendor_key if one.vendor_id < 0 else one.vendor_id
        times = moment(one.start_time), moment(one.end_time)
        rows.append((str(one.pk), one.status, one.vendor_type, of, one.trigger, *times))
    columns = ("execution", "status", "vendor", "vendor id", "trigger", "started", "ended")
    more = [f"The newest {plural(limit, 'execution')}; there are more."] if has_more else []
    return Answer(data, [table(columns, rows), *more])


def _show_arguments(parser: CommandParser) -> None:
    parser.add_argument("id", type=positive_integer, metavar="ID", help="the execution")
    text = "list its running jobs instead, with the progress and the last message of each"
    parser.add_argument("--running", action="store_true", help=text)


def _show(options: dict[str, Any]) -> Answer:
    execution = Execution.objects.filter(pk=options["id"]).first()
    if execution is None:
        raise NoSuchExecution(options["id"])
    if options["running"]:
        return _running(execution.pk)
    found = progress(execution.pk)
    reason = Quarantine.objects.filter(pk=execution.pk).values_list("reason", flat=True).first()
    data = {"counts": found.counts, "tasks": found.total, "progress": found.share, "quarantine": reason}
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
    return Answer(_fields(execution) | data, [table(("", ""), [row for row in rows if row[1]])])


def _fields(execution: Execution) -> dict[str, Any]:
    return {name: getattr(execution, name) for name in FIELDS}


def _running(execution_id: int) -> Answer:
    data, rows = [], []
    for job in running_jobs(execution_id, MOST_RUNNING):
        said = check_in_of(job) or CheckIn()
        ago = (timezone.now() - job.heard_at).total_seconds() if job.heard_at else 0
        one = {"task_id": job.task_id, "name": job.name, "message": said.message, "done": said.done, "of": said.of}
        data.append({**one, "seconds_ago": round(max(0, ago), 1)})
        done = "" if said.of is None else f"{said.done:,} of {said.of:,}"
        rows.append((str(job.task_id), job.name, done, said.message, f"{data[-1]['seconds_ago']:g} s ago"))
    shown: list[Any] = [table(("task", "job", "done", "message", "last heard of"), rows)]
    if len(rows) == MOST_RUNNING:
        shown.append(f"The first {plural(MOST_RUNNING, 'job')}; there may be more.")
    return Answer({"running": data}, shown if rows else ["No job runs now."])


SHOW = "show one execution, its tasks by status, and the share that has ended"
VERBS = {
    "list": Subcommand("list the executions that match the options, the newest first", _list, _list_arguments),
    "show": Subcommand(SHOW, _show, _show_arguments),
}
