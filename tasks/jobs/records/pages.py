"""Read a page of records; drop and report the unreadable ones."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from harbor_refresh.tasks import signals
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.records.records import KEPT, job_records

Page = Sequence[tuple[str, JobRecord | None]]
T = TypeVar("T")


def readable(page: Page) -> tuple[list[JobRecord], int]:
    """Return the readable records, and how many were dropped."""
    return without_unreadable(page, job_records().forget)


def without_unreadable(
    page: Sequence[tuple[str, T | None]], forget: Callable[[Sequence[str]], None]
) -> tuple[list[T], int]:
    """Return what is readable, and how many were dropped with `forget`."""
    unreadable = [job for job, one in page if one is None]
    if unreadable:
        forget(unreadable)
        signals.discarded.send(sender=readable, members=[job.encode(errors=KEPT) for job in unreadable])
    return [one for _, one in page if one is not None], len(unreadable)
