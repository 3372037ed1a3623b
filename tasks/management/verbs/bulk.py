"""The verbs that act on many executions: stop, retry, resume, refresh and delete.

They count what the options choose, ask, and do the work in this process. Executions that are named by their IDs
are not asked about, unless they would be deleted.
"""

import sys
from contextlib import suppress
from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Outcome, at_terminal, note
from harbor_refresh.executions.attached.ownership import refuse_if_attached
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.management.command import Subcommand
from harbor_refresh.executions.management.output import Answer, Failed, Misused, bar_shown
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.queries.chosen_pages import count, span
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.jobs.stops import KILL_AFTER, stop_jobs
from harbor_refresh.tasks.management.verbs.executions import add_filter, chosen
from harbor_refresh.tasks.operations.bulk import VERBS as BULK_VERBS
from harbor_refresh.tasks.operations.bulk import Done, first_of, walk

COUNT_SECONDS = 60
SHOWN = 20


def _arguments(parser: CommandParser) -> None:
    add_filter(parser)
    parser.add_argument("--all", action="store_true", help="every execution; needed if there is no other filter")
    parser.add_argument("--dry-run", action="store_true", help="only count; change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _arguments_of_stop(parser: CommandParser) -> None:
    _arguments(parser)
    text = "after this time, kill the processes of jobs that still run; only with IDs of executions"
    parser.add_argument("--kill-after", type=float, metavar="SECONDS", help=text)


def _act(verb: Verb, options: dict[str, Any]) -> Answer:
    """Act on what was counted: executions that are created after the count are not touched. The entry in the log
    of actions is written before the first of them is changed, and gets its count at the end."""
    if verb != Verb.REFRESH:
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
        return Answer({**data, "total": 0}, ["No execution is chosen; nothing was changed."])
    if not options["yes"] and (not which.ids or verb == Verb.DELETE):
        _ask_person(f"{verb.capitalize()} {how_many}? [y/N] ")
    entry = note(at_terminal(), verb, Kind.EXECUTIONS, detail=which.as_text() or "all")
    done, is_complete = Done(), False
    # Ctrl-C rolls back the portion in progress, and ends the walk
    with suppress(KeyboardInterrupt), bar_shown(verb, total) as show:
        for _, one in walk(verb, which, *span(which, counted.highest)):
            done += one
            show(done.count)
        is_complete = True
    failed, error = len(done.failed), first_of(done.failed)
    entry.count = done.changed
    entry.outcome = Outcome.FAILED if failed else Outcome.DONE if done.changed else Outcome.UNCHANGED
    entry.save(update_fields=["count", "outcome"])
    for execution_id in which.ids if kill_after is not None else ():
        with suppress(NoSuchExecution):  # it was deleted meanwhile
            stop_jobs(execution_id, kill_after=kill_after)
    failure = f"{plural(failed, 'execution')} failed, the first of them: {error}" if failed else ""
    if not is_complete:
        failure = "it was interrupted before its end; to do the rest, type it again"
    data |= {"is_complete": is_complete, "total": total, "changed": done.changed, "skipped": done.skipped}
    did = f"{plural(done.changed, 'execution')} {BULK_VERBS[verb].did}"
    summary = f"{did}, {done.skipped:,} left as they are, {failed:,} failed."
    return Answer({**data, "failed": failed, "error": error}, [summary], failure)


def _ask_person(question: str) -> None:
    """Ask on stderr, so that stdout has only the answer of the command."""
    if not sys.stdin.isatty():
        raise Misused("there is no terminal to ask on; use --yes, or --dry-run to count")
    sys.stderr.write(question)
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("nothing was changed")


HELP = {
    Verb.STOP: "stop executions: waiting jobs do not begin, running jobs are asked to stop",
    Verb.RETRY: "run the failed jobs of executions once more, and the jobs that need them",
    Verb.RESUME: "run the stopped jobs of executions once more",
    Verb.REFRESH: "recompute the status of executions from their tasks, without the queue",
    Verb.DELETE: "delete executions that have ended, with their tasks and their history",
}
VERBS = {
    verb.value: Subcommand(text, partial(_act, verb), _arguments_of_stop if verb == Verb.STOP else _arguments)
    for verb, text in HELP.items()
}
