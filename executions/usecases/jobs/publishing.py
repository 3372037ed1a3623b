"""Publish: a message for every job that was recorded and has none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from executions.models import Job
from executions.queue import job_records
from executions.status import FINAL_CODE, Status

PAGE = 500


@dataclass(frozen=True)
class Message:
    """Run this job. `published` is when that was said, in microseconds of Redis's clock."""

    job: str
    task_id: int
    name: str
    args: Sequence[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    revision: int
    runs: int
    max_attempts: int
    has_followers: bool
    published: int

    @classmethod
    def of(cls, job: Job, published: int) -> "Message":
        task = job.task
        return cls(
            job=task.job_id,
            task_id=task.pk,
            name=job.name,
            args=job.args,
            kwargs=job.kwargs,
            options=job.options,
            revision=task.status_revision,
            runs=task.run_count,
            max_attempts=job.max_attempts,
            has_followers=job.has_followers,  # type: ignore[attr-defined]  # of `publishable`
            published=published,
        )


Publish = Callable[[Sequence[Message]], None]


def publish_recorded(
    publish: Publish,
    *,
    execution_id: int | None = None,
    after: Sequence[int] | None = None,
    doubtful: bool = False,
) -> int:
    """Publish what has no message: of one execution, of those that follow these tasks, or all there is.

    Page by page: lock, publish, note that it was, commit. Those that somebody else is publishing are passed over.

    What if the process dies after it has published and before the commit: the page is published again. Whoever
    publishes what may have been published before says so (`doubtful`), and each message of such a job asks the
    database before it runs. Returns how many messages went out.
    """
    count, last = 0, 0
    while True:
        with transaction.atomic():
            jobs = list(_unpublished(execution_id, after, last))
            if not jobs:
                return count
            published = send(publish, jobs, doubtful=doubtful)
            last = jobs[-1].pk
            Job.objects.filter(pk__in=[job.pk for job in jobs]).update(published_at=at(published))
        count += len(jobs)


def send(publish: Publish, jobs: Sequence[Job], *, doubtful: bool) -> int:
    """The messages of these jobs, which are `publishable`. Returns when, in microseconds of Redis's clock."""
    names = [job.task.job_id for job in jobs]
    published, _ = job_records().clock(names if doubtful else ())
    publish([Message.of(job, published) for job in jobs])
    return published


def at(microseconds: int) -> datetime:
    """A moment of Redis's clock; what it is compared with is of the same clock."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)


def publishable() -> Any:
    """Jobs with what a message needs."""
    followers = Job.objects.filter(follows=OuterRef("pk"))
    return Job.objects.select_related("task").annotate(has_followers=Exists(followers)).order_by("pk")


def _unpublished(execution_id: int | None, after: Sequence[int] | None, last: int) -> Any:
    """Of a chain only the job whose turn it is."""
    jobs = publishable().filter(published_at=None, task__status_code__lt=FINAL_CODE, pk__gt=last)
    jobs = jobs.filter(Q(follows=None) | Q(follows__task__status=Status.SUCCESS))
    if execution_id is not None:
        jobs = jobs.filter(task__execution_id=execution_id)
    if after is not None:
        jobs = jobs.filter(follows__in=after)
    return jobs.select_for_update(of=("self",), skip_locked=True)[:PAGE]
