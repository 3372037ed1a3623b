"""Report the status of any number of tasks in one statement. Harbor's own reports come by api/hook.py."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from django.db import transaction

from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import run
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.lifecycle.rollup import refresh_at_once
from harbor_refresh.executions.news import counters, signals
from harbor_refresh.executions.news.after_commit import Member, tell_touched
from harbor_refresh.executions.status import CODES, LAST_REVISION, MAX_EARLIER_RUNS, MAX_ID, MAX_REVISION
from harbor_refresh.executions.text import is_whole, shown, storable


class Source(StrEnum):
    """The way by which reports came. They are counted by it."""

    API = "api"
    HOOK = "hook"
    JOB = "job"
    RETRY = "retry"
    STOP = "stop"
    CODE = "code"


@dataclass(frozen=True)
class Report:
    """A runner's statement that a task has this status in this revision (run). `earlier_runs`: the number of runs
    before this one, or 0 if the runner does not count them; `run_count` becomes at least this number, because a
    report of an earlier run that comes after this one changes nothing."""

    task_id: int
    status: str
    revision: int = 0
    message: str | None = None
    earlier_runs: int = 0


@dataclass(frozen=True)
class Refusal:
    """A report that cannot be used, and the reason. `position` is its index in the batch, from 0."""

    position: int
    report: Report
    reason: str
    is_unknown: bool = False


@dataclass
class ReportOutcome:
    """The result of a batch: applied + unchanged + refused = reports given. `applied_at`: their positions."""

    applied_at: list[int] = field(default_factory=list)
    unchanged: int = 0
    refused: list[Refusal] = field(default_factory=list)
    execution_ids: list[int] = field(default_factory=list)

    @property
    def applied(self) -> int:
        return len(self.applied_at)


def report(reports: Iterable[Report], source: Source = Source.CODE) -> ReportOutcome:
    """Apply reports, unless a Harbor owns the tasks."""
    refuse_if_attached(Operation.REPORT)
    return apply_reports(reports, source)


def apply_reports(reports: Iterable[Report], source: Source = Source.CODE) -> ReportOutcome:
    """Apply reports as if they came one after the other; tell which executions changed.

    1. Set aside the reports that cannot be used. The outcome names them, and the rest goes on.
    2. Apply the rest in one statement. Revision and code guard each report.
    3. After the commit, send the news of the changed executions, so that they are marked; if the process dies
       before that, reconcile finds them. An execution with a stopped task is also refreshed at once.
    """
    given = dict(enumerate(reports))
    reasons = {position: reason for position, one in given.items() if (reason := _why_unusable(one, source))}
    outcome = ReportOutcome(refused=[Refusal(position, given[position], why) for position, why in reasons.items()])
    usable = [(position, one) for position, one in given.items() if position not in reasons]
    if usable:
        with transaction.atomic():
            _apply(usable, outcome, source)
    outcome.unchanged = len(given) - outcome.applied - len(outcome.refused)
    if outcome.refused:
        outcome.refused.sort(key=lambda refusal: refusal.position)
        count_refused(source, len(outcome.refused))
        signals.refused.send(sender=report, refusals=outcome.refused)
    return outcome


def count_refused(source: Source, count: int) -> None:
    """Count refused reports a moment later: they have changed no row, and may come as a flood."""
    counters.add_later({("reports", f"result=refused,source={source}"): count})


def _apply(usable: Sequence[tuple[int, Report]], outcome: ReportOutcome, source: Source) -> None:
    reports = [one for _, one in usable]
    *touched, (*_, accepted, unknown) = run(
        "apply_reports",
        task_ids=[one.task_id for one in reports],
        statuses=[str(one.status) for one in reports],
        codes=[CODES[one.status] for one in reports],
        revisions=[one.revision for one in reports],
        messages=[one.message for one in reports],
        earlier_runs=[one.earlier_runs for one in reports],
        source=str(source),
    )
    missing = set(unknown or ())
    outcome.refused += [
        Refusal(position, one, f"there is no task {one.task_id}", is_unknown=True)
        for position, one in usable
        if one.task_id in missing
    ]
    outcome.applied_at = sorted(usable[place - 1][0] for place in accepted or ())
    outcome.execution_ids = [pk for pk, *_ in touched]
    stopped = [pk for pk, _, has_stop, *_ in touched if has_stop]
    after_commit([(pk, vendor_type) for pk, vendor_type, *_ in touched], stopped)


def after_commit(changed: Sequence[Member], stopped: Sequence[int]) -> None:
    """After the commit, tell which executions changed, and refresh those with a stopped task at once."""

    def tell() -> None:
        crash_points.reach("reported", [execution_id for execution_id, _ in changed])
        tell_touched(changed)
        refresh_at_once(stopped)

    transaction.on_commit(tell)


def _why_unusable(one: Report, source: Source) -> str | None:
    if not isinstance(one.status, str) or one.status not in CODES:
        return f"unknown status {shown(one.status)}; takes {', '.join(CODES)}"
    if not is_whole(one.task_id, 1, MAX_ID):
        return f"malformed task id {shown(one.task_id)}; takes a whole number from 1"
    if not is_whole(one.revision, 0, MAX_REVISION if source in (Source.API, Source.CODE) else LAST_REVISION):
        return f"malformed revision {shown(one.revision)}; takes a whole number from 0 to 2^61 - 2^32"
    if not is_whole(one.earlier_runs, 0, MAX_EARLIER_RUNS):
        takes = f"takes a whole number from 0 to {MAX_EARLIER_RUNS:,}"
        return f"malformed earlier runs {shown(one.earlier_runs)}; {takes}"
    if one.message is not None and not storable(one.message):
        return f"malformed message {shown(one.message)}; takes text without NUL"
    return None
