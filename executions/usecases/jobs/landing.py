"""Land: the turns that jobs have taken become reports, and are acknowledged."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from executions import signals
from executions.database import absence_translated, run
from executions.models import Job
from executions.queue import JobRecord, job_records
from executions.status import Status, is_final
from executions.usecases.reporting import Report, report

#: What a job hands on to the next of its chain is the last message of its record: this, and JSON.
RESULT = "result: "


@dataclass(frozen=True)
class Turn:
    """A job has this status in this revision. `result` is for the job that follows it, if one wants it."""

    job: str
    task_id: int
    revision: int
    status: str
    message: str = ""
    result: Any = None

    @classmethod
    def of(cls, record: JobRecord) -> "Turn":
        message, result = record.message, None
        if message.startswith(RESULT) and record.status == Status.SUCCESS:
            message, result = "", json.loads(message.removeprefix(RESULT))
        return cls(record.job, record.task_id, record.revision, record.status, message, result)


def land(turns: Sequence[Turn]) -> None:
    """Report these turns, see to those who follow, and acknowledge.

    1. In one transaction: the reports; results for the next of a chain; and the rest of a chain that was
       broken is stopped, for its turn will never come.
    2. After the commit, acknowledge. A job that has ended is forgotten by Redis now.
    3. Ask for the messages of those whose turn it is.

    What if the process dies between 1 and 2: it is reported again, which changes nothing. Between 2 and 3:
    whoever repairs publishes them. Raises DatabaseAway, and then nothing has happened.
    """
    ended = {turn.task_id: turn for turn in turns if is_final(turn.status)}
    with absence_translated(), transaction.atomic():
        report(Report(turn.task_id, turn.status, turn.revision, turn.message or None) for turn in turns)
        succeeded = _hand_on(ended)
    job_records().acknowledge((turn.job, turn.revision, turn.status) for turn in turns)
    if succeeded:
        signals.recorded.send(sender=land, after=succeeded)


def _hand_on(ended: dict[int, Turn]) -> list[int]:
    """Which of these have succeeded and are followed."""
    if not ended:
        return []
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
