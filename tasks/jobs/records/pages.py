"""Read a page of records; drop and report the unreadable ones."""

from collections.abc import Sequence

from tasks import signals
from tasks.jobs.records.record import JobRecord
from tasks.jobs.records.records import KEPT, job_records

Page = Sequence[tuple[str, JobRecord | None]]


def readable(page: Page) -> tuple[list[JobRecord], int]:
    """Return the readable records, and how many were dropped."""
    unreadable = [job for job, record in page if record is None]
    if unreadable:
        job_records().forget(unreadable)
        signals.discarded.send(sender=readable, members=[job.encode(errors=KEPT) for job in unreadable])
    return [record for _, record in page if record], len(unreadable)
