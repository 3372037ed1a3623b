"""Deliveries: reports of jobs are written to the database or posted to the hook, and acknowledged in Redis."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db import transaction

from harbor_refresh.executions.lifecycle.reports import Door, Refusal
from harbor_refresh.executions.lifecycle.reports import report as report_tasks
from harbor_refresh.executions.news import counters
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.lifecycle.chains import stop_broken, write_results
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport, end_of_each_run
from harbor_refresh.tasks.jobs.lifecycle.kept_ends import keep_ends
from harbor_refresh.tasks.jobs.lifecycle.requested_arguments import write_arguments
from harbor_refresh.tasks.jobs.records.arguments import Request
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.repair.tally import refused_of
from harbor_refresh.tasks.without_redis import mode


@dataclass
class Delivered:
    """`count`: how many were delivered. `left`: the hook did not accept these, and the caller tries them again.
    `refused`: the database did not accept these, and recovery tries them again."""

    count: int = 0
    left: Sequence[JobReport] = ()
    why_left: str = ""
    refused: Sequence[JobReport] = ()
    #: The tasks that have succeeded, so the turn of the jobs that follow them may have come.
    succeeded: Sequence[int] = field(default=(), compare=False)


def deliver(reports: Sequence[JobReport]) -> Delivered:
    """Deliver these reports, move the chains of jobs that have ended, and acknowledge.

    1. Without a hook, one transaction locks the tasks, leaves out reports that come too late, because the job has
       ended or was stopped meanwhile, applies the reports, stops the rest of a broken chain, writes the arguments
       that jobs asked for and their retries, also those of late reports, writes results into the jobs that follow,
       and keeps what runs have left (kept_ends.py). With a hook, a transaction leaves out late reports and writes
       all that but the first two before the reports are posted. The rest of a broken chain is stopped afterwards,
       if the target has applied the report by then. The end of a job that the target rejects for good is applied
       here.
    2. Acknowledge what was delivered. Redis now deletes the record of a job that has ended.

    If the database refuses, halve and try each half, until the refused report is alone.

    What if the process dies before 2: the report is delivered again, which changes nothing. If the target applies
    a report after it has answered: recovery publishes or stops the jobs that follow, by what the database says.
    If it raises DatabaseAway, no report is acknowledged.
    """
    if refresh_settings().report_url and not mode.is_on():
        return _deliver_over_the_hook(reports)
    return _deliver_here(end_of_each_run(reports))


def _deliver_here(reports: Sequence[JobReport]) -> Delivered:
    late: list[JobReport] = []
    refused = refused_of(partial(_write, late=late, applies_here=True), reports)
    written = _without(refused, reports)
    _acknowledge(written, late)
    return Delivered(len(written), refused=refused, succeeded=_succeeded(written))


def _deliver_over_the_hook(reports: Sequence[JobReport]) -> Delivered:
    """Post the reports. Acknowledge those that the hook rejects for good, because another attempt would be
    rejected, too.

    If such a report says that its job has ended, it is applied here, like a report without a hook, because no
    other program will apply it. If its task stayed Running, its execution and its chain would stay open, and its
    job would run again. A task that is gone needs no report.
    """
    from harbor_refresh.tasks.jobs.delivery.hook import (
        hook,  # loaded only if there is a hook, because of its dependencies
    )

    late: list[JobReport] = []
    refused = refused_of(partial(_write, late=late, applies_here=False), reports)
    posted = hook().post(_without([*late, *refused], reports))
    refusals = [Refusal(position, one.task_report, why) for position, (one, why) in enumerate(posted.unwanted)]
    if refusals:
        signals.refused.send(sender=deliver, refusals=refusals)
    ends = [report for report, _ in posted.unwanted if is_final(report.status)]
    refused += refused_of(partial(_write, late=late, applies_here=True), ends)
    answered = _without([*late, *refused], [*posted.accepted, *(report for report, _ in posted.unwanted)])
    refused_of(_stop_behind, answered)
    done = [*answered, *late]
    _acknowledge(done, late)
    return Delivered(len(done), posted.left, posted.why_left, refused, _succeeded(done))


def _write(reports: Sequence[JobReport], *, late: list[JobReport], applies_here: bool) -> None:
    """Write in one transaction what the database must know of these reports: the reports themselves, if they are
    applied here, and what later messages need. Reports that come too late are added to `late`."""
    with transaction.atomic():
        too_late = _late(reports, may_break=applies_here)
        in_time = _without(too_late, reports)
        if applies_here:
            _report(in_time)
            _stop_behind(in_time)
        write_arguments(_requests(reports))
        _write_retries(reports)
        write_results(in_time)
        keep_ends(in_time)
    late += too_late


def _report(reports: Sequence[JobReport]) -> None:
    """Apply reports, and count those that changed their task, by their status, in the same transaction."""
    outcome = report_tasks([report.task_report for report in reports], Door.JOB)
    statuses = Counter(reports[position].status for position in outcome.applied_at)
    counters.add({("job_reports", f"status={status}"): count for status, count in statuses.items()})


def _late(reports: Sequence[JobReport], *, may_break: bool) -> list[JobReport]:
    """Return reports that would reopen an ended job, or whose task is gone. The tasks stay locked, and so do those
    behind them in a chain that may break."""
    rows = run(
        "late_reports",
        task_ids=[report.task_id for report in reports],
        jobs=[report.job for report in reports],
        revisions=[report.revision for report in reports],
        breaking=[report.task_id for report in reports if may_break and report.breaks_chain],
    )
    return [reports[position - 1] for (position,) in rows]


def _requests(reports: Sequence[JobReport]) -> list[Request]:
    """Return what the jobs asked for. A job that was stopped meanwhile goes on from there if it is resumed."""
    return [report.request for report in reports if report.request]


def _write_retries(reports: Sequence[JobReport]) -> None:
    """Write how many retries led to these runs, for each later message."""
    if retried := [report for report in reports if report.retries]:
        run(
            "write_retries",
            task_ids=[one.task_id for one in retried],
            jobs=[one.job for one in retried],
            revisions=[one.revision for one in retried],
            retries=[one.retries for one in retried],
        )


def _stop_behind(reports: Sequence[JobReport]) -> None:
    stop_broken([report.task_id for report in reports if report.breaks_chain])


def _acknowledge(reports: Sequence[JobReport], late: Sequence[JobReport]) -> None:
    """Acknowledge these reports; a late report is acknowledged as Stopped, because its job is over."""
    job_records().acknowledge((one.job, one.revision, one.status) for one in _without(late, reports))
    job_records().acknowledge((one.job, one.revision, Status.STOPPED) for one in late)
    job_records().arguments_are_written((one.job, one.arguments.revision) for one in _requests(reports))


def _succeeded(reports: Sequence[JobReport]) -> list[int]:
    return [report.task_id for report in reports if report.is_followed_success]


def _without(some: Sequence[JobReport], reports: Sequence[JobReport]) -> Sequence[JobReport]:
    return [report for report in reports if report not in some] if some else reports
