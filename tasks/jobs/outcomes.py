"""Outcomes of runs, and of messages that no run can begin. Every way out of `running` is one of these.

An outcome names its run, and changes nothing if the job is in another run by now, or has ended. So an outcome may
come late, twice, or from a process that was taken for dead.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from django.db import DatabaseError, transaction

from harbor_refresh.executions.database import absence_translated, among, first_line, in_halves, sqlstate
from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.executions.lifecycle.reports import Report, Source
from harbor_refresh.executions.lifecycle.reports import report as report_tasks
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.news import counters
from harbor_refresh.executions.status import CODES, MAX_ID, Status, is_final
from harbor_refresh.executions.text import is_whole, made_storable
from harbor_refresh.tasks.jobs import report_target
from harbor_refresh.tasks.jobs.running import kept_ends
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.models.job import Job, JobEnd, JobState, Need

log = logging.getLogger("harbor_refresh")

#: The header of a job's message: which run of which task. The row knows all else.
HEADER = "harbor_job"
#: The arguments of a message, which a run replaces by those of its row. In a worker whose older code has a plain
#: task of that name, they are an error, which ends the job; without them that code would run, untracked.
REFUSED_BY_OLDER_CODE = {"the_code_of_this_worker_is_older_than_this_job": True}
#: No counter of runs gets larger.
MAX_COUNT = 2**31 - 1
#: Characters of a status message.
MAX_MESSAGE = 2_000
#: SQLSTATEs that are no fault of a job: a change of the schema (0A, 42), a pooler (26), other transactions (40,
#: 55), the server's memory (53), a time limit (57), the server's disk and files (58, XX001, XX002).
NOT_OF_A_JOB = ("0A", "26", "40", "42", "53", "55", "57", "58", "XX001", "XX002")


@dataclass(frozen=True)
class Run:
    """One run of a job: `number` is how many have begun, with it. `revision` is that of its reports. `job` is
    empty if the task is known to be that of the job.

    `worker` and `process` are where it runs, if that is known, because after a failover that has lost its begin
    another run may have the same number. `worker` is None for the run of a message that has not begun."""

    task_id: int
    job: str
    number: int
    revision: int = 0
    worker: int | None = None
    process: int | None = None


def header_of(task_id: int, number: int) -> dict[str, Any]:
    return {HEADER: {"task": task_id, "run": number}}


def run_of(header: Any) -> tuple[int, int] | None:
    """Return the task and the run. None if the header, which may hold anything, names none."""
    if not isinstance(header, dict):
        return None
    task, number = header.get("task"), header.get("run")
    return (task, number) if is_whole(task, 1, MAX_ID) and is_whole(number, 0, MAX_COUNT) else None  # type: ignore[return-value]


@dataclass(frozen=True)
class Outcome:
    """The run gets this status. Not final: Running says that it goes on, and Pending or Scheduled that the job
    waits for another run, after `delay` seconds, and with other arguments, as JSON, if it asks for them.
    `result` is for the jobs that need it, and JSON."""

    run: Run
    status: Status
    message: str = ""
    result: str | None = None
    kept: JobEnd | None = None
    delay: float | None = None
    arguments: Sequence[Any] | None = None
    retries: int | None = None
    #: Whether another job needs this one, and whether another may wait for its place in a limit.
    is_needed: bool = False
    is_limited: bool = False
    queue: str = ""

    @property
    def waits(self) -> bool:
        return CODES[self.status] < CODES[Status.RUNNING]


def end_unbegun(its: Run, exc: Exception) -> bool:
    """End the job whose begin the database refuses with this error, such as one whose arguments are too large with
    what it takes of others. False if its message is to come again: it is another error, or the end cannot be
    written now."""
    if not isinstance(exc, DatabaseError) or _passes(exc):
        return False
    return end_sent(its, f"it cannot begin: {first_line(exc)}")


def end_sent(its: Run, why: str, kept: JobEnd | None = None) -> bool:
    """End a job as an error: sent -> ended. False if its run has begun, or the end cannot be written now."""
    with suppress(RefreshError):
        return bool(take_apart([Outcome(its, Status.ERROR, made_storable(why)[:MAX_MESSAGE], kept=kept)]).stood)
    return False


def _passes(exc: Exception) -> bool:
    return isinstance(exc, RefreshError) or (sqlstate(exc) or "").startswith(NOT_OF_A_JOB)


class Taken(NamedTuple):
    """These outcomes stood; those are `left`, and may be written by another try; the database refuses the rest."""

    stood: list[Outcome]
    left: list[Outcome]
    refused: list[Outcome]


def take(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Write these outcomes, and return those that stood. Raises DatabaseDown."""
    return _take(outcomes, waits=True).stood


def take_apart(outcomes: Sequence[Outcome]) -> Taken:
    """Write these outcomes so that none holds up others: one whose task another transaction has locked is left,
    and one that the database refuses is found in halves. Raises DatabaseDown."""
    taken = Taken([], [], [])
    for part, done in in_halves(partial(_take, waits=False), outcomes, (Exception,)):
        if isinstance(done, Taken):
            taken.stood.extend(done.stood)
            taken.left.extend(done.left)
        elif _passes(done):
            taken.left.extend(part)
        else:
            log.error("The end of task %d cannot be written: %s", part[0].run.task_id, done, exc_info=done)
            taken.refused.extend(part)
    return taken


def _take(outcomes: Sequence[Outcome], *, waits: bool) -> Taken:
    """Write these outcomes in one transaction.

    1. Lock their tasks and jobs, and leave out the outcomes whose run is over.
    2. Write the results that other jobs need, and what is kept of ends.
    3. Report to the tasks, or, with a report target, note what is to be reported. The end of a task ends its job
       and decides about those that need it (sql/schema/end_with_their_tasks.sql).
    4. Jobs that wait for another run get its revision.

    If the process dies before the commit, then nothing has happened, and its runs are released.
    """
    if not outcomes:
        return Taken([], [], [])
    with absence_translated(), transaction.atomic():
        standing, left = _lock(outcomes, waits=waits)
        results = [one for one in standing if one.status == Status.SUCCESS and one.result is not None]
        _write("write_results", [(one.run, {"results": one.result}) for one in results])
        kept_ends.write((one.run.task_id, one.run.revision, one.kept) for one in standing if one.kept)
        _report(standing)
        _write("wait_again", [(one.run, _again(one)) for one in standing if one.waits])
    return Taken(standing, left, [])


def _lock(outcomes: Sequence[Outcome], *, waits: bool) -> tuple[list[Outcome], list[Outcome]]:
    """Lock the tasks of these outcomes and of the jobs that end with them, in id order, as reports do; then the
    jobs. Return the outcomes whose run is not over, and those that are left, because another transaction has
    locked one of their tasks.

    Whatever takes a job out of `running` holds its task, so a run stays under this lock. The jobs behind a failure
    are locked here and not when they are ended: two transactions that end jobs that others need would wait for
    each other. Which these are never changes, so they are found before.
    """
    ids = {one.run.task_id for one in outcomes}
    failed = {one.run.task_id for one in outcomes if is_final(one.status) and one.status != Status.SUCCESS}
    wanted = ids | find_behind(failed)
    tasks = Task.objects.order_by("pk").values_list("pk", "job_id", "status_revision", named=True)
    locking = tasks.filter(among(wanted)).select_for_update(no_key=True, skip_locked=not waits)
    held = {task.pk: task for task in locking}
    missing = wanted - held.keys()  # some may be deleted
    locked = {task.pk for task in tasks.filter(among(missing))} if missing else set()
    held_up, found = set[int](), locked
    while found:  # back from what is locked to what it needs
        held_up |= found
        needs = Need.objects.filter(among(found, "job"))
        found = wanted.intersection(needs.values_list("needed", flat=True)) - held_up
    are_left = locked | (held_up & failed)
    unended = Job.objects.filter(state__in=(JobState.SENT, JobState.RUNNING)).order_by("pk")
    its = unended.filter(among((ids & held.keys()) - are_left)).select_for_update(no_key=True)
    rows = its.values_list("pk", "state", "run", "node", "process", "revision", named=True)
    jobs = {job.pk: job for job in rows}
    # of two outcomes of a run the first stands: a job may return after `retry(throw=False)`
    standing: dict[int, Outcome] = {}
    for one in outcomes:
        job, task = jobs.get(one.run.task_id), held.get(one.run.task_id)
        if job and task and one.run.job in ("", task.job_id) and _is_in(job, one.run):
            standing.setdefault(job.pk, _in_its_revision(one, job.revision, task.status_revision))
    return list(standing.values()), [one for one in outcomes if one.run.task_id in are_left]


def find_behind(task_ids: Iterable[int]) -> set[int]:
    """Return the tasks of all jobs that need one of these, or need one of those."""
    given = list(task_ids)
    return {pk for (pk,) in run("find_behind", task_ids=given)} if given else set()


def _is_in(job: Any, its: Run) -> bool:
    """Whether the job is in this run; or, if it has not begun, whether the job is sent and waits for it."""
    is_there = job.state == JobState.SENT if its.worker is None else job.node == its.worker
    return is_there and job.run == its.number and its.process in (None, job.process)


def report_scheduled(task_ids: Sequence[int], revision: int) -> None:
    """Report that these new jobs wait for their time, in the transaction that writes them."""
    if task_ids:
        _report([Outcome(Run(task_id, "", 0, revision), Status.SCHEDULED) for task_id in task_ids])


def _in_its_revision(outcome: Outcome, of_job: int, of_task: int) -> Outcome:
    """A job that waits again does so in the next revision. Without a report target the task may have a later one
    than its job, by a report of another program."""
    revision = of_job if report_target.is_set() else max(of_job, of_task)
    if outcome.waits:
        revision = report_target.next_revision(revision)
    return replace(outcome, run=replace(outcome.run, revision=revision))


def _report(outcomes: Sequence[Outcome]) -> None:
    reports = [
        Report(one.run.task_id, one.status, one.run.revision, one.message or None, _earlier_runs(one))
        for one in outcomes
    ]
    if report_target.is_set():
        report_target.note(reports)
    else:
        report_tasks(reports, Source.JOB)
    statuses = Counter(str(one.status) for one in outcomes)
    counters.add({("job_reports", f"status={status}"): count for status, count in statuses.items()})


def _earlier_runs(outcome: Outcome) -> int:
    """Return the number of runs before the one that the report is of."""
    its = outcome.run
    return its.number if outcome.waits or its.worker is None else its.number - 1


def _write(statement: str, rows: Sequence[tuple[Run, dict[str, Any]]]) -> None:
    """Run the statement for these runs, with a list of each value."""
    if rows:
        values = {name: [its[name] for _, its in rows] for name in rows[0][1]}
        revisions = [its.revision for its, _ in rows]
        run(statement, task_ids=[its.task_id for its, _ in rows], revisions=revisions, **values)


def _again(outcome: Outcome) -> dict[str, Any]:
    args, kwargs = map(json.dumps, outcome.arguments) if outcome.arguments else (None, None)
    return {"delays": outcome.delay, "args": args, "kwargs": kwargs, "retries": outcome.retries}


def exhausted(max_attempts: int) -> str:
    often = "once" if max_attempts == 1 else f"{max_attempts} times"
    return f"it has begun {often}, which is as often as it may: see max_attempts"
