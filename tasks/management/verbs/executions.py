"""The verbs of executions: list and show; and stop, retry, resume, refresh and delete, which act on many.

The latter count what the options choose, ask, and do the work in this process. Executions that are named by their
IDs are not asked about, unless they would be deleted.
"""

import json
import sys
from argparse import ArgumentTypeError
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.utils import timezone

from harbor_refresh.executions.attached.ownership import refuse_if_attached
from harbor_refresh.executions.errors import NoSuchExecution, Refused
from harbor_refresh.executions.lifecycle import vendor_keys
from harbor_refresh.executions.management.command import Subcommand, age, argument, positive_integer
from harbor_refresh.executions.management.command import count as count_of
from harbor_refresh.executions.management.output import Answer, Failed, Misused, bar_shown, table
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.news.audit import Target, Word, at_terminal, note, outcome_of
from harbor_refresh.executions.queries.chosen_pages import count, span
from harbor_refresh.executions.queries.error_groups import by_message, newest_errors
from harbor_refresh.executions.queries.filters import Filter, by_path
from harbor_refresh.executions.queries.progress import progress
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.jobs.queries import check_in_of, running_jobs
from harbor_refresh.tasks.jobs.running.handle import JobCheckIn
from harbor_refresh.tasks.jobs.stops import KILL_AFTER, stop_jobs
from harbor_refresh.tasks.operations.bulk import VERBS as BULK_VERBS
from harbor_refresh.tasks.operations.bulk import Done, first_of, walk

#: What JSON has of an execution: the fields that the API answers with.
FIELDS = (
    *("id", "vendor_type", "vendor_id", "vendor_key", "status", "status_message", "trigger", "extra_attrs"),
    *("start_time", "update_time", "end_time", "revision"),
)
#: At most so many running jobs, messages of errors, and ids that are unknown, are shown.
MOST_RUNNING, MOST_MESSAGES, SHOWN = 50, 4, 20
COUNT_SECONDS = 60


def _pair(text: str) -> tuple[str, str]:
    path, is_pair, value = text.partition("=")
    if not is_pair or not path:
        raise ArgumentTypeError(f"{text[:40]!r} is no attribute; takes PATH=TEXT, such as repository.name=nginx")
    return path, value


STATUSES = "executions with this status; may be repeated"
OLDER = "executions that started longer ago than this, such as 30m, 12h, 7d or 2w"
ATTRIBUTES = "executions with this text at the dotted path of extra_attrs; may be repeated"
SEVERAL: dict[str, Any] = {"action": "append", "default": []}
FILTER = (
    argument("ids", help="these executions", nargs="*", type=positive_integer, metavar="ID"),
    argument("--quarantined", help="executions in quarantine", action="store_true", default=None),
    argument("--has-jobs", help="executions with a job", action="store_true", default=None),
    argument("--vendor", help="executions of this vendor type", metavar="X", default=""),
    argument("--vendor-id", help="executions of the object with this number or text", metavar="ID"),
    argument("--status", help=STATUSES, choices=Status.values, metavar="S", **SEVERAL),
    argument("--trigger", help="executions with this trigger", metavar="T", default=""),
    argument("--older-than", help=OLDER, type=age, metavar="AGE"),
    argument("--newer-than", help="executions that started more recently than this", type=age, metavar="AGE"),
    argument("--attribute", help=ATTRIBUTES, type=_pair, metavar="PATH=TEXT", **SEVERAL),
)


def chosen(options: dict[str, Any]) -> Filter:
    now = datetime.now(UTC)
    try:
        return Filter(
            vendor_type=options["vendor"],
            statuses=options["status"],
            started_after=options["newer_than"] and now - options["newer_than"],
            started_before=options["older_than"] and now - options["older_than"],
            attributes=by_path(options["attribute"]),
            **{name: options[name] for name in ("vendor_id", "trigger", "ids", "quarantined", "has_jobs")},
        )
    except Refused as exc:
        raise Misused(str(exc)) from exc


def _list(options: dict[str, Any]) -> Answer:
    limit = options["limit"]
    found = list(chosen(options).apply(Execution.objects.order_by("-pk"))[: limit + 1])
    shown, has_more = found[:limit], len(found) > limit
    vendor_keys.read_for(shown)
    data = {"executions": [_fields(one) for one in shown], "has_more": has_more}
    if not shown:
        return Answer(data, ["No execution is chosen."])
    rows = [
        (str(one.pk), one.status, one.vendor_type, one.vendor_key, one.trigger, one.start_time, one.end_time)
        for one in shown
    ]
    columns = ("execution", "status", "vendor", "vendor id", "trigger", "started", "ended")
    more = [f"The newest {plural(limit, 'execution')}; there are more."] if has_more else []
    return Answer(data, [table(columns, rows), *more])


def _show(options: dict[str, Any]) -> Answer:
    execution = Execution.objects.filter(pk=options["id"]).first()
    if execution is None:
        raise NoSuchExecution(options["id"])
    if options["running"]:
        return _running(execution.pk)
    found = progress(execution.pk)
    reason = Quarantine.objects.filter(pk=execution.pk).values_list("reason", flat=True).first()
    newest, bound = newest_errors(execution_id=execution.pk)
    errors = by_message(newest)[:MOST_MESSAGES]
    data = {"counts": found.counts, "tasks": found.total, "progress": found.share, "quarantine": reason}
    data["errors"] = [{"message": one.key, "count": one.count, "task_id": one.task_id} for one in errors]
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(found.counts.items()))
    rows = [
        ("execution", str(execution.pk)),
        ("vendor", f"{execution.vendor_type} {execution.vendor_key}".removesuffix(" 0")),
        ("status", execution.status),
        ("message", execution.status_message),
        *((plural(one.count, "error"), f"{one.key or '(no message)'} (task {one.task_id})") for one in errors),
        ("trigger", execution.trigger),
        ("attributes", json.dumps(execution.extra_attrs, ensure_ascii=False)),
        ("started", execution.start_time),
        ("ended", execution.end_time),
        ("tasks", f"{found.total:,}: {counts}" if counts else "none"),
        ("progress", f"{int(found.share * 100)}%"),
        ("quarantine", reason),
    ]
    shown: list[Any] = [table(("", ""), [row for row in rows if row[1]]), *([bound] if bound else [])]
    return Answer(_fields(execution) | data, shown)


def _fields(execution: Execution) -> dict[str, Any]:
    return {name: getattr(execution, name) for name in FIELDS}


def _running(execution_id: int) -> Answer:
    data, rows = [], []
    for job in running_jobs(execution_id, MOST_RUNNING):
        said = check_in_of(job) or JobCheckIn()
        ago = (timezone.now() - job.heard_at).total_seconds() if job.heard_at else 0
        one = {"task_id": job.task_id, "name": job.name, "message": said.message, "done": said.done, "of": said.of}
        data.append({**one, "seconds_ago": round(max(0, ago), 1)})
        done = "" if said.of is None else f"{said.done:,} of {said.of:,}"
        rows.append((str(job.task_id), job.name, done, said.message, f"{data[-1]['seconds_ago']:g} s ago"))
    shown: list[Any] = [table(("task", "job", "done", "message", "last heard of"), rows)]
    if len(rows) == MOST_RUNNING:
        shown.append(f"The first {plural(MOST_RUNNING, 'job')}; there may be more.")
    return Answer({"running": data}, shown if rows else ["No job runs now."])


def _act(verb: Word, options: dict[str, Any]) -> Answer:
    """Act on what was counted: executions that are created after the count are not touched. The entry in the log
    of actions is written before the first of them is changed, and gets its count at the end."""
    if verb != Word.REFRESH:
        refuse_if_attached(BULK_VERBS[verb].operation)
    which, kill_after = chosen(options), options.get("kill_after")
    if which.is_empty and not options["all"]:
        raise Misused("choose executions by an ID or an option, or all of them by --all")
    has_ids_alone = bool(which.ids) and which == Filter(ids=which.ids)
    if kill_after is not None and not (has_ids_alone and KILL_AFTER.accepts(kill_after)):
        raise Misused(f"--kill-after takes {KILL_AFTER.what}, and executions by their IDs alone")
    known = Execution.objects.filter(pk__in=which.ids).values_list("pk", flat=True)
    if unknown := sorted({*which.ids} - {*known}):
        raise Failed(f"there is no execution {id_list(unknown, at_most=SHOWN)}; nothing was changed")
    counted = count(which, seconds=COUNT_SECONDS)
    total = counted.count if counted.is_complete else None
    how_many = plural(counted.count, "execution") + ("" if counted.is_complete else " or more")
    data: dict[str, Any] = {"verb": verb.value, "filter": which.as_json()}
    if options["dry_run"]:
        data |= {"count": counted.count, "is_complete": counted.is_complete}
        return Answer(data, [f"Dry run: {how_many} to {verb}; nothing was changed."])
    if total == 0:
        data |= _outcome(Done(), total, is_complete=True)
        return Answer(data, ["No execution is chosen; nothing was changed."])
    if not options["yes"] and (not which.ids or verb == Word.DELETE):
        _ask_person(f"{verb.capitalize()} {how_many}? [y/N] ")
    entry = note(at_terminal(), verb, Target.EXECUTIONS, detail=which.as_text() or "all")
    done, is_complete = Done(), False
    # Ctrl-C rolls back the portion in progress, and ends the walk
    with suppress(KeyboardInterrupt), bar_shown(verb, total) as show:
        for _, one in walk(verb, which, *span(which, counted.highest)):
            done += one
            show(done.count)
        is_complete = True
    failed, error = len(done.failed), first_of(done.failed)
    entry.count = done.changed
    entry.outcome = outcome_of(done.changed, failed=failed > 0)
    entry.save(update_fields=["count", "outcome"])
    for execution_id in which.ids if is_complete and kill_after is not None else ():
        with suppress(NoSuchExecution):  # it was deleted meanwhile
            stop_jobs(execution_id, kill_after=kill_after)
    failure = f"{plural(failed, 'execution')} failed, the first of them: {error}" if failed else ""
    if verb == Word.DELETE and which.ids and done.skipped:
        failure = failure or "what was left has not ended, or a row of the project names it"
    if not is_complete:
        failure = "it was interrupted before its end; to do the rest, type it again"
    did = f"{plural(done.changed, 'execution')} {BULK_VERBS[verb].did}"
    summary = f"{did}, {done.skipped:,} left as they are, {failed:,} failed."
    return Answer(data | _outcome(done, total, is_complete=is_complete), [summary], failure)


def _outcome(done: Done, total: int | None, *, is_complete: bool) -> dict[str, Any]:
    counts = {"changed": done.changed, "skipped": done.skipped, "failed": len(done.failed)}
    return {"is_complete": is_complete, "total": total, **counts, "error": first_of(done.failed)}


def _ask_person(question: str) -> None:
    """Ask on stderr, so that stdout has only the answer of the command."""
    if not sys.stdin.isatty():
        raise Misused("there is no terminal to ask on; use --yes, or --dry-run to count")
    sys.stderr.write(question)
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("nothing was changed")


HELP = {
    Word.STOP: "stop executions: waiting jobs do not begin, running jobs are asked to stop",
    Word.RETRY: "run the failed jobs of executions once more, and the jobs that need them",
    Word.RESUME: "run the stopped jobs of executions once more",
    Word.REFRESH: "recompute the status of executions from their tasks, without the queue",
    Word.DELETE: "delete executions that have ended, with their tasks and their history",
}
LIST = "list the executions that match the options, the newest first"
SHOW = "show one execution, its most frequent errors, its tasks by status, and the share that has ended"
RUNNING = "list its running jobs instead, with the progress and the last message of each"
KILL = "after this time, kill the processes of jobs that still run; only with IDs of executions"
LIMIT = argument("--limit", type=count_of(1, 1_000_000), default=50, metavar="N", help="show the N newest (50)")
OF_MANY = (
    *FILTER,
    argument("--all", action="store_true", help="every execution; needed if there is no other filter"),
    argument("--dry-run", action="store_true", help="only count; change nothing"),
    argument("--yes", action="store_true", help="do not ask"),
)
OF_STOP = (*OF_MANY, argument("--kill-after", type=float, metavar="SECONDS", help=KILL))
OF_ONE = (
    argument("id", type=positive_integer, metavar="ID", help="the execution"),
    argument("--running", action="store_true", help=RUNNING),
)
VERBS = {"list": Subcommand(LIST, _list, [*FILTER, LIMIT]), "show": Subcommand(SHOW, _show, OF_ONE)}
VERBS |= {
    verb.value: Subcommand(text, partial(_act, verb), OF_STOP if verb == Word.STOP else OF_MANY)
    for verb, text in HELP.items()
}
#: A part of `repair`.
REFRESH = VERBS.pop(Word.REFRESH)
