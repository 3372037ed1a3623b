"""Verbs that act on the queue: repair, marks, quarantine, pause and unpause."""

from contextlib import suppress
from dataclasses import asdict
from typing import Any

from django.db.models import F

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.management.command import Subcommand, argument, one_of, positive_integer
from harbor_refresh.executions.management.output import Answer, bar_shown, refuse_second_run, table
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.executions.news.audit import Target, Word, at_terminal, note, noted
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.management.verbs import executions
from harbor_refresh.tasks.operations.pauses import pause, resume
from harbor_refresh.tasks.pipeline import legacy_marks
from harbor_refresh.tasks.pipeline.reconciliation import reconcile

#: At most so many ids are shown.
MAX_IDS = 10


def _drift(options: dict[str, Any]) -> Answer:
    full, dry_run = bool(options["full"]), bool(options["dry_run"])
    with bar_shown("looked at") as progress:
        outcome = reconcile(full=full, dry_run=dry_run, progress=progress)
    refuse_second_run("reconcile", outcome)
    if not dry_run:
        note(at_terminal(), Word.RECONCILE, Target.QUEUE, count=outcome.marked)
    told = ("rescan_reason", "looked_at", "drifted", "waiting", "marked", "released_from_quarantine")
    data = {"full": full, "dry_run": dry_run, **{name: getattr(outcome, name) for name in told}}
    what = "execution" if full or outcome.rescan_reason or is_attached() else "changed task"
    done = "dry run: nothing marked" if dry_run else f"{outcome.marked:,} marked"
    shown: list[Any] = [
        f"Looked at {plural(outcome.looked_at, what)}: {outcome.drifted:,} drifted, "
        f"{outcome.waiting:,} of them waiting already, {done}, "
        f"{outcome.released_from_quarantine:,} released from quarantine."
    ]
    if outcome.rescan_reason:
        shown.append(f"The watermark could not be trusted: {outcome.rescan_reason}.")
    rows = []
    for one in outcome.examples:
        true = one.true if one.true != one.stored else f"{one.true}, with another end"
        rows.append((str(one.execution_id), one.vendor, one.stored, true))
    if rows:
        shown.append(table(("execution", "vendor", "stored", "true"), rows))
    if outcome.drifted > len(rows):
        shown.append(f"… and {outcome.drifted - len(rows):,} more.")
    return Answer(data | {"first_drifts": [*map(asdict, outcome.examples)]}, shown)


def _export(options: dict[str, Any]) -> Answer:
    """An interrupted export is typed again: it takes the rest."""
    as_set = options["as_set"]
    with bar_shown("executions", legacy_marks.count_left(as_set=as_set)) as show:
        count = legacy_marks.export_marks(as_set=as_set, on_page=show)
    with suppress(DatabaseDown), absence_translated():
        note(at_terminal(), Word.EXPORT, Target.QUEUE, count=count)
    left = legacy_marks.count_left(as_set=as_set)
    shown = [f"Turned {plural(count, 'execution')} into marks of Harbor."]
    failure = f"{plural(left, 'mark')} of ours came meanwhile, or cannot be read: run it again" if left else ""
    return Answer({"moved": count, "left": left}, shown, failure)


def _quarantine(options: dict[str, Any]) -> Answer:
    quarantines: Any = Quarantine.objects.order_by("pk")
    if options["release"] or options["release_all"]:
        return _release(options["release"] or [*quarantines.values_list("pk", flat=True)])
    of_execution = {"vendor": F("execution__vendor_type"), "status": F("execution__status")}
    found = list(quarantines.values("execution_id", "attempts", "at", "reason", **of_execution))
    keys = ("vendor", "status", "attempts", "at", "reason")
    rows = [(str(one["execution_id"]), *(one[key] for key in keys)) for one in found]
    shown = table(("execution", "vendor", "status", "attempts", "since", "reason"), rows)
    return Answer({"quarantined": found}, [shown if found else "No execution is in quarantine."])


def _release(given: list[int]) -> Answer:
    ids = sorted(set(given))
    with noted(at_terminal(), Word.RELEASE, Target.QUARANTINE, id_list(ids, at_most=MAX_IDS)) as entry:
        released = sorted(release(ids))
        entry.count, entry.skip = len(released), not released
    absent = sorted(set(ids) - set(released))
    return Answer(
        {"released": released, "not_in_quarantine": absent},
        [f"Released {plural(len(released), 'execution')} for another try."],
        failure=f"not in quarantine: {', '.join(map(str, absent))}" if absent else "",
    )


def _pause(options: dict[str, Any]) -> Answer:
    queue = options["queue"]
    is_new = pause(queue, at_terminal(), options["reason"])
    said = f"{queue} is paused. `harbor unpause {queue}` ends it." if is_new else f"{queue} was paused before."
    return Answer({"queue": queue, "paused": True, "changed": is_new}, [said])


def _unpause(options: dict[str, Any]) -> Answer:
    queue = options["queue"]
    was_paused = resume(queue, at_terminal())
    said = f"{queue} is resumed." if was_paused else f"{queue} was not paused."
    return Answer({"queue": queue, "paused": False, "changed": was_paused}, [said])


DRIFT = "find executions whose status differs from their tasks, and queue them for a refresh"
OF_DRIFT = (
    argument("--full", action="store_true", help="check every execution, not only recently changed ones"),
    argument("--dry-run", action="store_true", help="only print; mark nothing"),
)
REPAIRS = {"drift": Subcommand(DRIFT, _drift, OF_DRIFT), "refresh": executions.REFRESH}
SET = "write the set of Harbor's main branch instead of keys"
OF_EXPORT = [argument("--set", action="store_true", dest="as_set", help=SET)]
MARKS = {"export": Subcommand("turn the queue into Harbor's own marks", _export, OF_EXPORT)}
QUEUE_HELP = f"a queue of the broker; the default, {WORK}, means refreshing"
QUEUE = argument("queue", nargs="?", default=WORK, metavar="QUEUE", help=QUEUE_HELP)
REASON = argument("--reason", default="", metavar="TEXT", help="the reason, shown on the page Queue")
RELEASE = argument("--release", nargs="+", type=positive_integer, metavar="ID", help="release these executions")
RELEASE_ALL = argument("--release-all", action="store_true", help="release all executions")
PAUSE = "pause refreshing, or the tracked jobs of a queue, until `harbor unpause`"
QUARANTINE = "list the executions in quarantine with their reasons, or release them"
REPAIR = "mark executions with a wrong status, or refresh executions"
VERBS = {
    "pause": Subcommand(PAUSE, _pause, [QUEUE, REASON]),
    "unpause": Subcommand("resume refreshing, or the jobs of a queue", _unpause, [QUEUE]),
    "quarantine": Subcommand(QUARANTINE, _quarantine, [one_of(RELEASE, RELEASE_ALL)]),
    "repair": Subcommand(REPAIR, parts=REPAIRS),
    "marks": Subcommand("turn the queue into the marks of Harbor", parts=MARKS),
}
