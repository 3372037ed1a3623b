"""Read a page of records; what nobody can read is dropped and told."""

from collections.abc import Sequence

from tasks import signals
from tasks.jobs.records.record import JobRecord
from tasks.jobs.records.records import job_records

Page = Sequence[tuple[str, JobRecord | None]]


def readable(page: Page) -> tuple[list[JobRecord], int]:
    """The records, and how many were dropped."""
    unreadable = [job for job, record in page if record is None]
    if unreadable:
        job_records().forget(unreadable)
        signals.discarded.send(sender=readable, members=[job.encode() for job in unreadable])
    return [record for _, record in page if record], len(unreadable)
