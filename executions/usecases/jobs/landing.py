"""Land: the turns that jobs have taken become reports, and are acknowledged."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError, transaction

from executions import signals
from executions.conf import refresh_settings
from executions.database import absence_translated, first_line, run
from executions.models import Job, Task
from executions.queue import job_records
from executions.status import Status
from executions.usecases.jobs.turn import Turn, end_of_each_run
from executions.usecases.reporting import Refusal, report

#: What the record of a job is told that has ended otherwise: it is over.
_OVER = Status.STOPPED


@dataclass
class Landed:
    """How many; `left` have not landed, for the hook did not take them: whoever has them comes again. `refused`
    have not, for the database has something against them: recovery comes again."""

    count: int = 0
    left: Sequence[Turn] = ()
    why_left: str = ""
    refused: Sequence[Turn] = ()


def land(turns: Sequence[Turn]) -> Landed:
    """Report these turns, see to those who follow, and acknowledge.

    1. Reports go over the hook if there is one; else they are applied here, in the transaction of 2.
    2. In one transaction: lock the tasks, and leave out turns that come too late, because the job has ended or
       was stopped meanwhile; results for the next of a chain; and the rest of a chain that was broken is stopped,
       for its turn will never come.
    3. After the commit, acknowledge what has landed. A job that has ended is forgotten by Redis now.
    4. Ask for the messages of those whose turn it is.

    If the database refuses, halve and try each half, until the turn that cannot land stands alone.

    What if the process dies between 1 and 3: it is reported again, which changes nothing. Between 3 and 4:
    whoever repairs publishes them. Raises DatabaseAway, and then nothing is acknowledged.
    """
    hooked = bool(refresh_settings().report_url)
    done, reported = _over_the_hook(turns) if hooked else (Landed(), end_of_each_run(turns))
    done.refused = _land(reported, is_reported=hooked)
    done.count = len(reported) - len(done.refused)
    return done


def _land(turns: Sequence[Turn], *, is_reported: bool) -> list[Turn]:
    """Those that the database refuses."""
    if not turns:
        return []
    try:
        with absence_translated(), transaction.atomic():
            late = _late(turns)
            in_time = [turn for position, turn in enumerate(turns, start=1) if position not in late]
            succeeded = _apply(in_time, is_reported=is_reported)
    except DatabaseError as exc:
        if len(turns) == 1:
            signals.troubled.send(sender=land, error=first_line(exc))
            return list(turns)
        middle = len(turns) // 2
        halves = (turns[:middle], turns[middle:])
        return [turn for half in halves for turn in _land(half, is_reported=is_reported)]
    job_records().acknowledge(
        (turn.job, turn.revision, _OVER if position in late else turn.status)
        for position, turn in enumerate(turns, start=1)
    )
    if succeeded:
        signals.recorded.send(sender=land, after=succeeded)
    return []


def _late(turns: Sequence[Turn]) -> set[int]:
    """The positions, from 1, of those that would open a job again that has ended, or whose task is not there. The
    tasks stay locked."""
    rows = run(
        "late_turns",
        task_ids=[turn.task_id for turn in turns],
        jobs=[turn.job for turn in turns],
        revisions=[turn.revision for turn in turns],
    )
    return {position for (position,) in rows}


def _apply(turns: Sequence[Turn], *, is_reported: bool) -> list[int]:
    """Report, unless that was done over the hook, and see to those who follow."""
    if not is_reported:
        report(turn.report for turn in turns)
    _change_arguments(turns)
    ended = {turn.task_id: turn for turn in turns if turn.is_final and turn.is_followed}
    return _hand_on(ended) if ended else []


def _change_arguments(turns: Sequence[Turn]) -> None:
    """Of jobs that asked for another try with other arguments: each message from now on has those."""
    for turn in turns:
        if turn.arguments is not None:
            args, kwargs = turn.arguments
            standing = Job.objects.filter(pk=turn.task_id, task__status_revision=turn.revision)
            standing.update(args=args, kwargs=kwargs)


def _over_the_hook(turns: Sequence[Turn]) -> tuple[Landed, Sequence[Turn]]:
    """What nobody wants has landed as far as it ever will."""
    from executions.hook import hook  # whoever has no hook need not load what it is made of

    delivered = hook().deliver(turns)
    unwanted = [Refusal(position, turn.report, why) for position, (turn, why) in enumerate(delivered.unwanted)]
    if unwanted:
        signals.refused.send(sender=land, refusals=unwanted)
    landed = [*delivered.landed, *(turn for turn, _ in delivered.unwanted)]
    return Landed(left=delivered.left, why_left=delivered.why_left), landed


def _hand_on(ended: dict[int, Turn]) -> list[int]:
    """Which of these have succeeded and are followed. A turn that came too late for its task moves no chain."""
    ended = _that_stand(ended)
    followers = [(job, ended[job.follows_id]) for job in Job.objects.filter(follows__in=ended) if job.follows_id]
    broken = [job.pk for job, before in followers if before.status != Status.SUCCESS]
    if broken:
        run("stop_chains", task_ids=broken)
    going = [(job, before) for job, before in followers if before.status == Status.SUCCESS]
    for job, before in going:
        if job.takes_result:
            job.args = [before.result, *job.args]
            job.takes_result = False
    Job.objects.bulk_update([job for job, _ in going], ["args", "takes_result"])
    return [before.task_id for _, before in going]


def _that_stand(ended: dict[int, Turn]) -> dict[int, Turn]:
    tasks = Task.objects.filter(pk__in=ended).values_list("pk", "status_revision", "status")
    return {pk: ended[pk] for pk, *stands in tasks if stands == [ended[pk].revision, ended[pk].status]}
