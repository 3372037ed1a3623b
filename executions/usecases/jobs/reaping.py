"""Reap: compare what Redis knows of jobs in progress with what the database has acknowledged, and settle it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from django.db import DatabaseError

from executions import signals
from executions.conf import refresh_settings
from executions.models import Job
from executions.queue import JobRecord, job_records
from executions.status import FINAL_CODE, Status
from executions.usecases.jobs.landing import Turn, land
from executions.usecases.jobs.publishing import at
from executions.usecases.jobs.reading import Page, readable
from executions.usecases.reporting import Report, report

PAGE = 500
LOST = "lost: it had begun, and nothing is known of it any more"


@dataclass
class Reaped:
    """What a pass did, by what it found."""

    reported: int = 0
    forgotten: int = 0
    failed: int = 0
    taken: int = 0
    lost: int = 0
    unsent: int = 0
    unreadable: int = 0
    troubled: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))


def reap() -> Reaped:
    """One pass over all jobs in progress, in pages; a page that cannot be settled is told, and the next goes on.

    | its record is                                             | then                                       |
    | --------------------------------------------------------- | ------------------------------------------ |
    | ahead of what has landed, or nothing has                  | it is reported again                       |
    | as it has landed, and final                               | it is forgotten                            |
    | as it has landed, not final, and silent for too long      | it fails, with that reason                 |
    | behind what has landed                                    | it is brought to what has landed           |
    | gone, and the job had begun                               | its task becomes Error, "lost"             |
    | gone, and its message was sent before Redis was emptied   | the message is sent again (recovering.py)  |

    "Ahead" and "behind" are by revision, then status code, then check-in. Every change is made only to the
    record that was seen, so a job that moves on meanwhile is left alone.
    """
    total = Reaped()
    now, since = job_records().clock()
    for page in job_records().all():
        _guarded(total, _settle, page, now)
    for jobs in _published():
        _guarded(total, _look_for, jobs, at(max(since, now - _silence())))
    if total:
        signals.reaped.send(sender=reap, outcome=total)
    return total


def _settle(total: Reaped, page: Page, now: int) -> None:
    changes: list[tuple[JobRecord, JobRecord | None]] = []
    ahead: list[JobRecord] = []
    known, unreadable = readable(page)
    total.unreadable += unreadable
    for record in known:
        landed = record.acknowledged
        if landed is None or record.progress > landed.progress:
            ahead.append(record)
        elif record.progress < landed.progress and not record.has_landed:
            taken = replace(record, revision=landed.revision, status=landed.status, node="")
            changes.append((record, None if taken.is_final else taken))
            total.taken += 1
        elif record.is_final:
            changes.append((record, None))
            total.forgotten += 1
        elif now - record.checked_in > _silence():
            reason = f"nothing was heard of it for {refresh_settings().job_hours:g} hours"
            failed = replace(record, status=Status.ERROR, message=reason)
            changes.append((record, failed))
            ahead.append(failed)
            total.failed += 1
    done = job_records().replace(changes)
    outdone = {old.job for (old, _), is_done in zip(changes, done, strict=True) if not is_done}
    land([Turn.of(one) for one in ahead if one.job not in outdone])
    total.reported += len(ahead)


def _look_for(total: Reaped, jobs: Sequence[Job], oldest: datetime) -> None:
    """Jobs that must have a record, if they have begun, or a message, if they have not: one that was sent
    before the oldest moment is lost, or may be."""
    known = job_records().of([job.task.job_id for job in jobs])
    gone = [job for job in jobs if job.task.job_id not in known]
    begun = [job.task for job in gone if job.task.status != Status.PENDING]
    if begun:
        report(Report(task.pk, Status.ERROR, task.status_revision, LOST) for task in begun)
        total.lost += len(begun)
    waiting = [job.pk for job in gone if job.task.status == Status.PENDING]
    still = Job.objects.filter(pk__in=waiting, task__status=Status.PENDING)
    total.unsent += still.filter(published_at__lt=oldest).update(published_at=None)


def _silence() -> int:
    """For so long a job in progress may be silent, in microseconds."""
    return round(refresh_settings().job_hours * 3600 * 1_000_000)


def _guarded(total: Reaped, settle: Callable[..., None], *what: Any) -> None:
    """What the database refuses of one page is no reason to leave the others. One that is away is."""
    try:
        settle(total, *what)
    except DatabaseError as exc:
        total.troubled += 1
        signals.troubled.send(sender=reap, error=str(exc).strip().splitlines()[0])


def _published() -> Iterator[Sequence[Job]]:
    """Jobs whose task is not final and that have had a message, in pages."""
    last = 0
    while True:
        jobs = Job.objects.select_related("task").filter(pk__gt=last, published_at__isnull=False)
        page = list(jobs.filter(task__status_code__lt=FINAL_CODE).order_by("pk")[:PAGE])
        if not page:
            return
        last = page[-1].pk
        yield page
