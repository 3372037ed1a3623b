"""Land: report the turns of jobs, and acknowledge them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from django.db import transaction

from executions.reports import Refusal, report
from executions.status import Status
from tasks import signals
from tasks.conf import refresh_settings
from tasks.database import run
from tasks.jobs.lifecycle.chains import hand_on, stop_broken
from tasks.jobs.lifecycle.turn import Turn, end_of_each_run
from tasks.jobs.records.records import job_records
from tasks.jobs.repair.tally import in_halves
from tasks.models.job import Job


@dataclass
class Landed:
    """`count`: how many landed. `left`: the hook did not accept these, and the caller tries them again. `refused`:
    the database did not accept these, and recovery tries them again."""

    count: int = 0
    left: Sequence[Turn] = ()
    why_left: str = ""
    refused: Sequence[Turn] = ()
    #: The tasks that have succeeded; it may be the turn of their followers now.
    succeeded: Sequence[int] = field(default=(), compare=False)


def land(turns: Sequence[Turn]) -> Landed:
    """Report these turns, move the chains of those that have ended, and acknowledge.

    1. Without a hook, one transaction locks the tasks, leaves out turns that come too late, because the job has
       ended or was stopped meanwhile, applies the reports, hands results on to the jobs that follow, and stops the
       rest of a chain that was broken. With a hook, late turns are left out and results handed on in a transaction
       before the reports are sent, and what follows a broken end is stopped after them, if the other side has
       applied it by then.
    2. Acknowledge what has landed. A job that has ended is forgotten by Redis now.

    If the database refuses, halve and try each half, until the turn that cannot land stands alone.

    What if the process dies before 2: it is reported again, which changes nothing. If the
    other side applies a report after it has answered: recovery publishes or stops what follows, by what the
    database says. Raises DatabaseAway, and then nothing is acknowledged.
    """
    if refresh_settings().report_url:
        return _land_over_the_hook(turns)
    return _land_here(end_of_each_run(turns))


def _land_here(turns: Sequence[Turn]) -> Landed:
    late: list[Turn] = []
    refused = in_halves(partial(_report, late=late), turns)
    reported = _without(refused, turns)
    _acknowledge(reported, late)
    return Landed(len(reported), refused=refused, succeeded=_succeeded(reported))


def _report(turns: Sequence[Turn], *, late: list[Turn]) -> None:
    """Report in one transaction. Turns that come too late are added to `late`."""
    with transaction.atomic():
        too_late = _late(turns)
        in_time = _without(too_late, turns)
        report(turn.report for turn in in_time)
        _change_arguments(in_time)
        _move_chains(in_time)
    late += too_late


def _late(turns: Sequence[Turn]) -> list[Turn]:
    """Return turns that would reopen an ended job, or whose task is gone. The tasks stay locked."""
    rows = run(
        "late_turns",
        task_ids=[turn.task_id for turn in turns],
        jobs=[turn.job for turn in turns],
        revisions=[turn.revision for turn in turns],
    )
    return [turns[position - 1] for (position,) in rows]


def _change_arguments(turns: Sequence[Turn]) -> None:
    """Store the changed arguments of jobs that asked for another try: each later message has them."""
    for turn in turns:
        if turn.arguments is not None:
            args, kwargs = turn.arguments
            standing = Job.objects.filter(pk=turn.task_id, task__status_revision__lte=turn.revision)
            standing.update(args=args, kwargs=kwargs, takes_result=False)


def _move_chains(turns: Sequence[Turn]) -> None:
    ended = [turn for turn in turns if turn.is_final and turn.is_followed]
    if ended:
        hand_on(ended)
        _stop_behind(ended)


def _land_over_the_hook(turns: Sequence[Turn]) -> Landed:
    """Reports that the hook rejects for good are acknowledged, because another attempt would be rejected, too."""
    from tasks.jobs.delivery.hook import hook  # loaded only if there is a hook, because of its dependencies

    late: list[Turn] = []
    refused = in_halves(partial(_prepare, late=late), turns)
    delivered = hook().deliver(_without([*late, *refused], turns))
    unwanted = [Refusal(position, turn.report, why) for position, (turn, why) in enumerate(delivered.unwanted)]
    if unwanted:
        signals.refused.send(sender=land, refusals=unwanted)
    reported = [*delivered.landed, *(turn for turn, _ in delivered.unwanted)]
    in_halves(_stop_behind, reported)
    _acknowledge([*reported, *late], late)
    count = len(reported) + len(late)
    return Landed(count, delivered.left, delivered.why_left, refused, _succeeded([*reported, *late]))


def _prepare(turns: Sequence[Turn], *, late: list[Turn]) -> None:
    """Write what must be there before the other side applies a report. Late turns are added to `late`."""
    with transaction.atomic():
        too_late = _late(turns)
        in_time = _without(too_late, turns)
        _change_arguments(in_time)
        hand_on(turn for turn in in_time if turn.is_final)
    late += too_late


def _stop_behind(turns: Sequence[Turn]) -> None:
    ended = (turn for turn in turns if turn.is_final and turn.is_followed)
    stop_broken([turn.task_id for turn in ended if turn.status != Status.SUCCESS])


def _acknowledge(turns: Sequence[Turn], late: Sequence[Turn]) -> None:
    """Acknowledge these turns; a late turn is acknowledged as Stopped, because its job is over."""
    job_records().acknowledge((turn.job, turn.revision, turn.status) for turn in _without(late, turns))
    job_records().acknowledge((turn.job, turn.revision, Status.STOPPED) for turn in late)


def _succeeded(turns: Sequence[Turn]) -> list[int]:
    return [turn.task_id for turn in turns if turn.is_followed and turn.status == Status.SUCCESS]


def _without(refused: Sequence[Turn], turns: Sequence[Turn]) -> Sequence[Turn]:
    return [turn for turn in turns if turn not in refused] if refused else turns
