"""Land: report the reports of jobs, and acknowledge them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db import transaction

from executions.reports import Refusal
from executions.reports import report as report_tasks
from executions.status import Status
from tasks import signals
from tasks.conf import refresh_settings
from tasks.database import run
from tasks.jobs.lifecycle.chains import hand_on, stop_broken
from tasks.jobs.lifecycle.job_report import JobReport, end_of_each_run
from tasks.jobs.records.records import job_records
from tasks.jobs.repair.tally import in_halves
from tasks.models.job import Job


@dataclass
class Landed:
    """`count`: how many landed. `left`: the hook did not accept these, and the caller tries them again. `refused`:
    the database did not accept these, and recovery tries them again."""

    count: int = 0
    left: Sequence[JobReport] = ()
    why_left: str = ""
    refused: Sequence[JobReport] = ()
    #: The tasks that have succeeded; it may be the turn of their followers now.
    succeeded: Sequence[int] = field(default=(), compare=False)


def land(reports: Sequence[JobReport]) -> Landed:
    """Report these reports, move the chains of those that have ended, and acknowledge.

    1. Without a hook, one transaction locks the tasks, leaves out reports that come too late, because the job has
       ended or was stopped meanwhile, applies the reports, hands results on to the jobs that follow, and stops the
       rest of a broken chain. With a hook, late reports are left out and results handed on in a transaction
       before the reports are sent, and what follows a broken end is stopped after them, if the other side has
       applied it by then.
    2. Acknowledge what has landed. A job that has ended is forgotten by Redis now.

    If the database refuses, halve and try each half, until the report that cannot land stands alone.

    What if the process dies before 2: it is reported again, which changes nothing. If the
    other side applies a report after it has answered: recovery publishes or stops what follows, by what the
    database says. Raises DatabaseAway, and then nothing is acknowledged.
    """
    if refresh_settings().report_url:
        return _land_over_the_hook(reports)
    return _land_here(end_of_each_run(reports))


def _land_here(reports: Sequence[JobReport]) -> Landed:
    late: list[JobReport] = []
    refused = in_halves(partial(_report, late=late), reports)
    reported = _without(refused, reports)
    _acknowledge(reported, late)
    return Landed(len(reported), refused=refused, succeeded=_succeeded(reported))


def _report(reports: Sequence[JobReport], *, late: list[JobReport]) -> None:
    """Report in one transaction. Reports that come too late are added to `late`."""
    with transaction.atomic():
        too_late = _late(reports)
        in_time = _without(too_late, reports)
        report_tasks(report.task_report for report in in_time)
        _change_arguments(in_time)
        _move_chains(in_time)
    late += too_late


def _late(reports: Sequence[JobReport]) -> list[JobReport]:
    """Return reports that would reopen an ended job, or whose task is gone. The tasks stay locked."""
    rows = run(
        "late_reports",
        task_ids=[report.task_id for report in reports],
        jobs=[report.job for report in reports],
        revisions=[report.revision for report in reports],
    )
    return [reports[position - 1] for (position,) in rows]


def _change_arguments(reports: Sequence[JobReport]) -> None:
    """Store the changed arguments of jobs that asked for another try: each later message has them."""
    for report in reports:
        if report.arguments is not None:
            args, kwargs = report.arguments
            standing = Job.objects.filter(pk=report.task_id, task__status_revision__lte=report.revision)
            standing.update(args=args, kwargs=kwargs, takes_result=False)


def _move_chains(reports: Sequence[JobReport]) -> None:
    hand_on(reports)
    _stop_behind(reports)


def _land_over_the_hook(reports: Sequence[JobReport]) -> Landed:
    """Reports that the hook rejects for good are acknowledged, because another attempt would be rejected, too."""
    from tasks.jobs.delivery.hook import hook  # loaded only if there is a hook, because of its dependencies

    late: list[JobReport] = []
    refused = in_halves(partial(_prepare, late=late), reports)
    delivered = hook().deliver(_without([*late, *refused], reports))
    unwanted = [
        Refusal(position, report.task_report, why) for position, (report, why) in enumerate(delivered.unwanted)
    ]
    if unwanted:
        signals.refused.send(sender=land, refusals=unwanted)
    reported = [*delivered.landed, *(report for report, _ in delivered.unwanted)]
    in_halves(_stop_behind, reported)
    _acknowledge([*reported, *late], late)
    count = len(reported) + len(late)
    return Landed(count, delivered.left, delivered.why_left, refused, _succeeded([*reported, *late]))


def _prepare(reports: Sequence[JobReport], *, late: list[JobReport]) -> None:
    """Write what must be there before the other side applies a report. Late reports are added to `late`."""
    with transaction.atomic():
        too_late = _late(reports)
        in_time = _without(too_late, reports)
        _change_arguments(in_time)
        hand_on(in_time)
    late += too_late


def _stop_behind(reports: Sequence[JobReport]) -> None:
    stop_broken([report.task_id for report in reports if report.breaks_chain])


def _acknowledge(reports: Sequence[JobReport], late: Sequence[JobReport]) -> None:
    """Acknowledge these reports; a late report is acknowledged as Stopped, because its job is over."""
    job_records().acknowledge((report.job, report.revision, report.status) for report in _without(late, reports))
    job_records().acknowledge((report.job, report.revision, Status.STOPPED) for report in late)


def _succeeded(reports: Sequence[JobReport]) -> list[int]:
    return [report.task_id for report in reports if report.is_followed_success]


def _without(refused: Sequence[JobReport], reports: Sequence[JobReport]) -> Sequence[JobReport]:
    return [report for report in reports if report not in refused] if refused else reports
