"""Delete the executions that retention does not keep, and other old rows; refresh executions that dangle.

One sweep runs at a time.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.access.audit import Kind, Word, at_terminal, note
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.management.output import Answer, Failed, bar_shown, table
from harbor_refresh.executions.retention.rules import DryRunCount, Retention, count
from harbor_refresh.executions.retention.sweep import Swept, sweep
from harbor_refresh.executions.text import plural

HELP = "delete what retention does not keep; refresh executions whose tasks no longer change"


def arguments(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count what would be deleted; write nothing")


def answer(options: dict[str, Any]) -> Answer:
    refuse_if_attached(Operation.DELETE)
    with bar_shown("counting") as show:
        found = count(Retention.of_settings(), show)
        if options["dry_run"]:
            return _counted(found)
        doomed = sum(one.executions for one in found.values())
        outcome = sweep(progress=lambda now: show(now.executions, doomed, "deleting"))
    if outcome.held:
        raise Failed(
            "another sweep is running, so this one did nothing. Repeat it when that has ended. "
            f"{outcome.held.holder} has the lease until {outcome.held.until.isoformat()}."
        )
    if outcome.lease_lost:
        raise Failed("this sweep stood still for so long that another took over, so it ended early.")
    note(at_terminal(), Word.SWEEP, Kind.EXECUTION, count=outcome.executions)
    return _done(found, outcome)


def _as_data(found: dict[str, DryRunCount]) -> dict[str, dict[str, int]]:
    return {vendor: {"executions": one.executions, "tasks": one.tasks} for vendor, one in found.items()}


def _counted(found: dict[str, DryRunCount]) -> Answer:
    executions, tasks = (sum(getattr(one, what) for one in found.values()) for what in ("executions", "tasks"))
    shown: list[Any] = [
        f"Would delete {plural(executions, 'execution')} with {plural(tasks, 'task')}. "
        "Dry run: nothing was written."
    ]
    if found:
        rows = [(vendor, one.executions, one.tasks) for vendor, one in found.items()]
        shown.append(table(("vendor", "executions", "tasks"), rows))
    passed = sum((one.passed for one in found.values()), Counter[str]())
    shown += [f"{number:,} more stay, because rows name them in {column}." for column, number in passed.items()]
    return Answer({"dry_run": True, "found": _as_data(found)}, shown)


def _done(found: dict[str, DryRunCount], outcome: Swept) -> Answer:
    data = {
        "dry_run": False,
        "found": _as_data(found),
        "executions": outcome.executions,
        "tasks": outcome.tasks,
        "old_rows": outcome.forgotten,
        "passed": {"executions": outcome.passed, "example": outcome.example},
        "failed": {step: str(error) for step, error in outcome.failed.items()},
        "dangling": {"refreshed": outcome.refreshed, "left": outcome.left, "first_left": outcome.left_ids},
    }
    failure = "; ".join(f"the step {step!r} failed: {error}" for step, error in outcome.failed.items())
    return Answer(data, [*_told(found, outcome)], failure)


def _told(found: dict[str, DryRunCount], outcome: Swept) -> Iterator[str]:
    yield (
        f"Deleted {plural(outcome.executions, 'execution')} with {plural(outcome.tasks, 'task')}, "
        f"and {plural(sum(outcome.forgotten.values()), 'old row')}."
    )
    doomed = sum(one.executions + one.passed.total() for one in found.values())
    if (left := doomed - outcome.executions - outcome.passed) > 0:
        yield f"{left:,} more were locked or changed meanwhile; the next sweep takes them."
    if outcome.passed:
        why = f"because the database does not let them be deleted, such as execution {outcome.example}"
        yield f"{outcome.passed:,} more stay, {why}."
    if outcome.refreshed or outcome.left:
        count = plural(outcome.refreshed, "execution")
        yield f"Refreshed {count} of which no task moved for {outcome.dangling_hours:g} hours."
    if outcome.left:
        ids = ", ".join(map(str, outcome.left_ids)) + (" …" if outcome.left > len(outcome.left_ids) else "")
        yield f"{outcome.left:,} more stay as they are, because they have an unfinished task or no task: {ids}"
