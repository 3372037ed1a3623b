"""Chains: the result of a run is written into the jobs that follow it, and jobs whose turn will never come are
ended."""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harbor_refresh.executions.news.after_commit import tell_touched_after_commit
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.models.job import PARTS

#: A pass reads at most about this many waiting jobs, twice as many at worst, so its cost does not grow with them.
LOOKED_AT = 10_000


def write_results(reports: Iterable[JobReport]) -> None:
    """Write the results of these runs into the jobs that follow them, before their success is reported or with it.

    So the result of a task that has succeeded is there, whichever program applies the report, and whenever.

    What if the process dies before the report: the record of the run still has the result, and recovery writes and
    reports it again. What if the job was given to another node meanwhile: the result of its next run has a later
    revision, and replaces this one. What if that result is there already: this one changes nothing.
    """
    successful = [report for report in reports if report.is_followed_success]
    if successful:
        run(
            "write_results",
            task_ids=[report.task_id for report in successful],
            revisions=[report.revision for report in successful],
            results=[json.dumps(report.result) for report in successful],
        )


def stop_broken(task_ids: Sequence[int], *, are_lost: bool = False) -> None:
    """Stop the jobs that wait behind those of these tasks that have ended without success. `are_lost`: a job that
    takes the result of a task that has succeeded, and has none, becomes Error. Idempotent, also at the same
    time."""
    if task_ids:
        tell_touched_after_commit(run("stop_chains", task_ids=list(task_ids), are_lost=are_lost))


@dataclass(frozen=True)
class Waiting:
    """A job without a message, and the task before it, which is final."""

    task_id: int
    before_id: int
    before_job: str
    before_status: str

    @property
    def is_behind_success(self) -> bool:
        return self.before_status == Status.SUCCESS


def waiting_behind_ended() -> list[Waiting]:
    """Return all such jobs if at most LOOKED_AT wait; else a random part. Later passes return the rest."""
    part = random.randrange(PARTS)  # noqa: S311
    return [Waiting(*row) for row in run("find_waiting_behind_ended", most=LOOKED_AT, part=part)]


def without_record(waiting: Iterable[Waiting]) -> list[int]:
    """Return the tasks before them that have no record in Redis. A run with a record may still write its result.
    After Redis was emptied, live runs need one ttl to write their records again."""
    waiting = list(waiting)
    if not waiting or not job_records().memory().is_settled:
        return []
    in_progress = job_records().of([one.before_job for one in waiting])
    return [one.before_id for one in waiting if one.before_job not in in_progress]
