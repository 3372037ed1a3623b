"""The verbs that act on many executions: stop, retry, resume, refresh and delete.

They count what the options choose, ask, and do the work in this process. Executions that are named by their IDs
are not asked about, unless they would be deleted.
"""

import sys
from collections.abc import Callable, Sequence
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
from harbor_refresh.executions.queries.chosen_pages import Counted, count, span
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.jobs.stops import KILL_AFTER, stop_jobs
from harbor_refresh.tasks.management.verbs import filter_options
from harbor_refresh.tasks.operations.bulk import OPERATIONS, first_of
from harbor_refresh.tasks.operations.bulk_verbs import VERBS, Done, walk

COUNT_SECONDS = 60
SHOWN = 20


def arguments(parser: CommandParser) -> None:
    filter_options.arguments(parser)
    parser.add_argument("--all", action="store_true", help="every execution; needed if there is no other filter")
    parser.add_argument("--dry-run", action="store_true", help="only count; change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _of_a_stop(parser: CommandParser) -> None:
    arguments(parser)
    parser.add_argument(
        "--kill-after",
        type=float,
        metavar="SECONDS",
        help="after this time, kill the processes of jobs that still run; only with IDs of executions",
    )


def _answer(verb: Verb, options: dict[str, Any]) -> Answer:
    """Act on what was counted: executions that are created after the count are not touched. The entry in the log
    of actions is written before the first of them is changed, and gets its count at the end."""
    if verb != Verb.REFRESH:
        refuse_if_attached(OPERATIONS[verb])
    chosen = filter_options.chosen(options)
    if chosen.is_empty and not options["all"]:
        raise Misused("choose executions by an ID or an option, or all of them by --all")
    kill_after = options.get("kill_after")
    has_ids_alone = bool(chosen.ids) and chosen == Filter(ids=chosen.ids)
    if kill_after is not None and not (has_ids_alone and KILL_AFTER.accepts(kill_after)):
        raise Misused(f"--kill-after takes {KILL_AFTER.what}, and executions by their IDs alone")
    _refuse_unknown(chosen.ids)
    counted = count(chosen, seconds=COUNT_SECONDS)
    known = {"verb": verb.value, "filter": chosen.as_json()}
    if options["dry_run"]:
        data = {**known, "count": counted.count, "is_complete": counted.is_complete}
        return Answer(data, [f"Dry run: {_how_many(counted)} to {verb}; nothing was changed."])
    if counted.is_complete and not counted.count:
        return Answer({**known, "total": 0}, ["No execution is chosen; nothing was changed."])
    if not options["yes"] and (not chosen.ids or verb == Verb.DELETE):
        _ask_person(f"{verb.capitalize()} {_how_many(counted)}? [y/N] ")
    total = counted.count if counted.is_complete else None
    entry = note(at_terminal(), verb, Kind.MANY, detail=chosen.as_text() or "all")
    done, is_all = _run(verb, chosen, counted.highest, total)
    entry.count = done.changed
    entry.outcome = Outcome.FAILED if done.failed else Outcome.DONE if done.changed else Outcome.UNCHANGED
    entry.save(update_fields=["count", "outcome"])
    counts = {"changed": done.changed, "skipped": done.skipped, "failed": len(done.failed)}
    error = first_of(done.failed)
    failure = f"{plural(len(done.failed), 'execution')} failed, the first of them: {error}" if done.failed else ""
    if not is_all:
        failure = "it was interrupted before its end; to do the rest, type it again"
    summary = (
        f"{plural(done.changed, 'execution')} {VERBS[verb].did}, {done.skipped:,} left as they are, "
        f"{len(done.failed):,} failed."
    )
    for execution_id in chosen.ids if kill_after is not None else ():
        with suppress(NoSuchExecution):  # it was deleted meanwhile
            stop_jobs(execution_id, kill_after=kill_after)
    return Answer({**known, "is_complete": is_all, "total": total, **counts, "error": error}, [summary], failure)


def _run(verb: Verb, chosen: Filter, highest: int, total: int | None) -> tuple[Done, bool]:
    """Return what was done, and whether that is all. Ctrl-C rolls back the portion in progress, and ends it."""
    done = Done()
    with suppress(KeyboardInterrupt), bar_shown(verb, total) as show:
        for _, one in walk(verb, chosen, *span(chosen, highest)):
            done += one
            show(done.count)
        return done, True
    return done, False


def _bulk(verb: Verb, help: str, takes: Callable[[CommandParser], None] = arguments) -> Subcommand:
    return Subcommand(help, partial(_answer, verb), takes)


STOP = _bulk(Verb.STOP, "stop executions: waiting jobs do not begin, running jobs are asked to stop", _of_a_stop)
RETRY = _bulk(Verb.RETRY, "run the failed jobs of executions once more, and the jobs that need them")
RESUME = _bulk(Verb.RESUME, "run the stopped jobs of executions once more")
REFRESH = _bulk(Verb.REFRESH, "recompute the status of executions from their tasks, without the queue")
DELETE = _bulk(Verb.DELETE, "delete executions that have ended, with their tasks and their history")


def _refuse_unknown(ids: Sequence[int]) -> None:
    known = Execution.objects.filter(pk__in=ids).values_list("pk", flat=True)
    if unknown := sorted({*ids} - {*known}):
        raise Failed(f"there is no execution {id_list(unknown, at_most=SHOWN)}; nothing was changed")


def _how_many(counted: Counted) -> str:
    found = plural(counted.count, "execution")
    return found if counted.is_complete else f"{found} or more"


def _ask_person(question: str) -> None:
    """Ask on stderr, so that stdout has only the answer of the command."""
    if not sys.stdin.isatty():
        raise Misused("there is no terminal to ask on; use --yes, or --dry-run to count")
    sys.stderr.write(question)
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("nothing was changed")
