"""Look: what jobs are doing at this moment. Changes nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Count

from tasks.jobs.lifecycle.publication import ITS_TURN, unpublished
from tasks.jobs.records.record import JobRecord
from tasks.jobs.records.records import job_records
from tasks.queue import execution_queue


@dataclass
class Look:
    """Jobs in progress by status, and by the node they run on; and what waits.

    `not_landed`: in progress, and the database does not know their last turn yet. `unsent`: recorded, their turn,
    and without a message. `in_chains`: wait for the job before them.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)
    live: Sequence[str] = ()
    not_landed: int = 0
    unreadable: int = 0
    unsent: int = 0
    in_chains: int = 0


def look() -> Look:
    """Reads the records a page at a time and keeps the numbers alone. A record that comes twice, because others
    come and go meanwhile, is counted twice."""
    total = Look()
    for page in job_records().all():
        for _, record in page:
            _count(record, total)
    total.live = execution_queue().stats().nodes
    waiting = unpublished().order_by().aggregate(all=Count("pk"), unsent=Count("pk", filter=ITS_TURN))
    total.unsent, total.in_chains = waiting["unsent"], waiting["all"] - waiting["unsent"]
    return total


def _count(record: JobRecord | None, total: Look) -> None:
    if record is None:
        total.unreadable += 1
        return
    total.statuses[record.status] += 1
    total.not_landed += not record.is_delivered
    if record.is_running:
        total.nodes[record.node] += 1


@dataclass(frozen=True)
class Seen:
    """A job in progress. `ago` is in seconds, and below 0 for one that is to run later."""

    record: JobRecord
    is_alive: bool
    ago: float


def look_at(job_id: str) -> Seen | None:
    """What Redis knows of this job now; None if it is not in progress. Raises QueueUnavailable."""
    record = job_records().of([job_id]).get(job_id)
    if record is None:
        return None
    now = execution_queue().stats().now
    return Seen(record, job_records().is_alive(record, now), (now - record.checked_in) / 1_000_000)
