"""Inspections: what jobs do at this moment. They change nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Count

from harbor_refresh.tasks.jobs.lifecycle.publication import ITS_TURN, unpublished
from harbor_refresh.tasks.jobs.records.check_in import CheckIn
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.queue import execution_queue


@dataclass
class Inspection:
    """Counts of jobs in progress, by status and by the node they run on, and of waiting jobs.

    `undelivered`: jobs in progress whose last report is not delivered yet. `unsent`: recorded jobs that may run
    and have no message. `in_chains`: jobs that wait for the job before them.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)
    live: Sequence[str] = ()
    undelivered: int = 0
    unreadable: int = 0
    unsent: int = 0
    in_chains: int = 0


def inspect() -> Inspection:
    """Count the jobs, a page of records at a time. A record that comes twice, because records are added and
    deleted meanwhile, is counted twice."""
    total = Inspection()
    for page in job_records().all():
        for _, record in page:
            _count(record, total)
    total.live = execution_queue().stats().nodes
    waiting = unpublished().order_by().aggregate(all=Count("pk"), unsent=Count("pk", filter=ITS_TURN))
    total.unsent, total.in_chains = waiting["unsent"], waiting["all"] - waiting["unsent"]
    return total


def _count(record: JobRecord | None, total: Inspection) -> None:
    if record is None:
        total.unreadable += 1
        return
    total.statuses[record.status] += 1
    total.undelivered += not record.is_delivered
    if record.is_running:
        total.nodes[record.node] += 1


@dataclass(frozen=True)
class JobInspection:
    """A job in progress. `ago` is when it checked in, in seconds; below 0 for a job that runs later."""

    record: JobRecord
    is_alive: bool
    ago: float

    @property
    def check_in(self) -> CheckIn | None:
        """Return what the run said last; None if the job does not run."""
        return CheckIn.read(self.record.message) if self.record.is_running else None


def inspect_jobs(job_ids: Sequence[str]) -> dict[str, JobInspection]:
    """Return what Redis knows of these jobs now, without those that are not in progress: two commands for up to
    PAGE of them. Raises QueueUnavailable."""
    if not (records := job_records().of(job_ids)):
        return {}
    now = execution_queue().stats().now
    return {
        job: JobInspection(record, job_records().is_alive(record, now), (now - record.checked_in) / 1_000_000)
        for job, record in records.items()
    }


def inspect_job(job_id: str) -> JobInspection | None:
    """Return what Redis knows of this job now; None if it is not in progress. Raises QueueUnavailable."""
    return inspect_jobs([job_id]).get(job_id)
