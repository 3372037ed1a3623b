"""Delete the executions that retention does not keep, and other old rows; refresh executions that dangle.

One sweep runs at a time.
"""

from collections import Counter
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions import pacing
from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.management.argument_types import age, vendor_type
from harbor_refresh.executions.management.bar import Show, bar_shown
from harbor_refresh.executions.management.output import Answer, Failed, table
from harbor_refresh.executions.retention import dangling
from harbor_refresh.executions.retention.rules import DryRunCount, Retention, count
from harbor_refresh.executions.retention.sweep import Swept, sweep
from harbor_refresh.executions.text import plural

HELP = "delete what retention does not keep; refresh executions whose tasks no longer change"


def arguments(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--dry-run", action="store_true", help="only count what would be deleted; write nothing")
    text = "delete only executions of this vendor type, and no other rows"
    add("--vendor", type=vendor_type, metavar="X", help=text)
    text = (
        "delete by age and not by the settings: all executions that ended longer ago than this (12h, 30d, 8w), "
        "and no other rows"
    )
    add("--older-than", type=age, metavar="AGE", help=text)


def answer(options: dict[str, Any]) -> Answer:
    refuse_if_attached(Operation.DELETE)
    vendor, older_than = options["vendor"], options["older_than"]
    rules = Retention.by_age(older_than, vendor) if older_than else Retention.of_settings(vendor)
    everything = not (vendor or older_than)
    with bar_shown("counting") as show:
        found = count(rules, show)
        doomed = sum(one.executions for one in found.values())
        if options["dry_run"]:
            return _counted(found, _count_dangling(show) if everything else Swept())
        outcome = sweep(
            None if everything else rules, progress=lambda now: show(now.executions, doomed, "deleting")
        )
    if outcome.held:
        raise Failed(
            "another sweep is running, so this one did nothing. Repeat it when that has ended. "
            f"{outcome.held.holder} has the lease until {outcome.held.until.isoformat()}."
        )
    if outcome.lease_lost:
        raise Failed("this sweep stood still for so long that another took over, so it ended early.")
    note(at_terminal(), Word.SWEEP, Kind.EXECUTION, _named(options), count=outcome.executions)
    return _done(found, outcome)


def _named(options: dict[str, Any]) -> str:
    """Name what was swept, for the log of actions."""
    age_given = options["older_than"] and f"older than {options['older_than']}"
    return ", ".join(filter(None, (options["vendor"], age_given)))


def _count_dangling(show: Show) -> Swept:
    counted = Swept(dangling_hours=pacing.DANGLING_HOURS)
    after: int | None = 0
    while after is not None:
        page = dangling.find(timedelta(hours=counted.dangling_hours), after)
        counted.looked_at += page.looked_at
        counted.refreshed += len(page.refreshable)
        counted.leave(page.unfinished)
        show(counted.looked_at, None, "looking for dangling executions")
        after = page.next
    return counted


def _as_data(found: dict[str, DryRunCount]) -> dict[str, dict[str, int]]:
    return {vendor: {"executions": one.executions, "tasks": one.tasks} for vendor, one in found.items()}


def _dangling_data(outcome: Swept) -> dict[str, Any]:
    return {"refreshed": outcome.refreshed, "left": outcome.left, "first_left": outcome.left_ids}


def _passed_data(outcome: Swept) -> dict[str, Any]:
    return {"executions": outcome.passed, "example": outcome.example}


def _counted(found: dict[str, DryRunCount], dangling: Swept) -> Answer:
    data = {"dry_run": True, "found": _as_data(found), "dangling": _dangling_data(dangling)}
    executions, tasks = (sum(getattr(one, what) for one in found.values()) for what in ("executions", "tasks"))
    shown: list[Any] = [
        f"Would delete {plural(executions, 'execution')} with {plural(tasks, 'task')}. "
        "Dry run: nothing was written."
    ]
    if found:
        rows = [(vendor, one.executions, one.tasks) for vendor, one in found.items()]
        shown.append(table(("vendor", "executions", "tasks"), rows))
    passed = sum((one.passed for one in found.values()), Counter[str]())
    for column, number in passed.items():
        shown.append(f"{number:,} more stay, because rows name them in {column}.")
    return Answer(data, [*shown, *_about(dangling, "Would refresh")])


def _done(found: dict[str, DryRunCount], outcome: Swept) -> Answer:
    data = {
        "dry_run": False,
        "found": _as_data(found),
        "executions": outcome.executions,
        "tasks": outcome.tasks,
        "old_rows": outcome.forgotten,
        "passed": _passed_data(outcome),
        "failed": {step: str(error) for step, error in outcome.failed.items()},
        "dangling": _dangling_data(outcome),
    }
    rows = sum(outcome.forgotten.values())
    summary = (
        f"Deleted {plural(outcome.executions, 'execution')} with {plural(outcome.tasks, 'task')}, "
        f"and {plural(rows, 'old row')}."
    )
    doomed = sum(one.executions + one.passed.total() for one in found.values())
    left = doomed - outcome.executions - outcome.passed
    more = [f"{left:,} more were locked or changed meanwhile; the next sweep takes them."] if left > 0 else []
    if outcome.passed:
        more.append(
            f"{outcome.passed:,} more stay, because the database does not let them be deleted, such as execution "
            f"{outcome.example}."
        )
    failure = "; ".join(f"the step {step!r} failed: {error}" for step, error in outcome.failed.items())
    return Answer(data, [summary, *more, *_about(outcome, "Refreshed")], failure=failure)


def _about(outcome: Swept, verb: str) -> list[str]:
    if not outcome.refreshed and not outcome.left:
        return []
    count = plural(outcome.refreshed, "execution")
    told = f"{verb} {count} of which no task moved for {outcome.dangling_hours:g} hours."
    if not outcome.left:
        return [told]
    ids = ", ".join(map(str, outcome.left_ids)) + (" …" if outcome.left > len(outcome.left_ids) else "")
    return [
        told,
        f"{outcome.left:,} more stay as they are, because they have an unfinished task or no task: {ids}",
    ]
