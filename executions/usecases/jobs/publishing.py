"""Publish: a message for every job that was recorded and has none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from executions.conf import refresh_settings
from executions.models import Job, Task
from executions.queue import Memory, at
from executions.queue.sets import pages
from executions.status import FINAL_CODE, Status
from executions.usecases.jobs.landing import land
from executions.usecases.jobs.remembering import note, remember
from executions.usecases.jobs.turn import Turn

PAGE = 500
#: The option of a message that is not for now. It is for the first run of a job.
LATER = "countdown"


@dataclass(frozen=True)
class Message:
    """Run this job. `database` is the name of the database that knows of it."""

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
    database: str

    @classmethod
    def of(cls, job: Job, database: str) -> "Message":
        task = job.task
        return cls(
            job=task.job_id,
            task_id=task.pk,
            name=job.name,
            args=job.args,
            kwargs=job.kwargs,
            options={
                name: value for name, value in job.options.items() if name != LATER or not task.status_revision
            },
            revision=task.status_revision,
            runs=task.run_count,
            max_attempts=job.may_begin,
            has_followers=job.has_followers,  # type: ignore[attr-defined]  # of `publishable`
            database=database,
        )


#: Sends messages. Returns those that cannot be made, and why; the others are sent. Raises if the broker is away.
Publish = Callable[[Sequence[Message]], Sequence[tuple[Message, str]]]


def publish_recorded(
    publish: Publish,
    *,
    execution_id: int | None = None,
    after: Sequence[int] | None = None,
) -> int:
    """Publish what has no message: of one execution, of those that follow these tasks, or all there is, but for
    what was recorded a moment ago: whoever recorded that is publishing it.

    Page by page: lock, publish, note that it was, commit. Those that somebody else is publishing are passed over.

    What if the process dies after it has published and before the commit: the page is published again, and the
    second message of a job finds that it runs or has ended. Returns how many messages went out.
    """
    if after is not None:
        which = [Q(follows__in=page) for page in pages(after, PAGE)]
    elif execution_id is not None:
        unfinished = Task.objects.filter(execution_id=execution_id, status_code__lt=FINAL_CODE).order_by("pk")
        which = [Q(pk__in=page) for page in pages(unfinished.values_list("pk", flat=True), PAGE)]
    else:
        return _publish_all(publish)
    return sum(len(_publish_page(publish, jobs)) for jobs in which)


def _publish_all(publish: Publish) -> int:
    a_moment_ago = Now() - timedelta(seconds=refresh_settings().node_ttl)
    count, last = 0, 0
    while True:
        which = Q(pk__gt=last, task__creation_time__lt=a_moment_ago)
        jobs = _publish_page(publish, which)
        if not jobs:
            return count
        count, last = count + len(jobs), jobs[-1].pk


def _publish_page(publish: Publish, which: Q) -> list[Job]:
    with transaction.atomic():
        found = unpublished().filter(which, ITS_TURN).select_for_update(of=("self",), skip_locked=True)
        jobs = list(found[:PAGE])
        if not jobs:
            return jobs
        memory, turns = send(publish, jobs)
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(published_at=at(memory.now))
        note(memory)  # last: other publishers wait for this row
    land(turns)
    return jobs


def send(publish: Publish, jobs: Sequence[Job]) -> tuple[Memory, list[Turn]]:
    """The messages of these jobs, which are `publishable`. Returns the moment, which the caller notes, and the
    turns that follow: a job whose message says "later" is Scheduled, and one that can have no message has failed.
    """
    remembered = remember()
    messages = [Message.of(job, remembered.database) for job in jobs]
    turns = [
        Turn(one.job, one.task_id, one.revision, Status.SCHEDULED) for one in messages if LATER in one.options
    ]
    turns += [
        Turn(one.job, one.task_id, one.revision, Status.ERROR, f"its message cannot be made: {why}")
        for one, why in publish(messages) or ()
    ]
    return remembered.memory, turns


def publishable() -> Any:
    """Jobs with what a message needs."""
    followers = Job.objects.filter(follows=OuterRef("pk"))
    return Job.objects.select_related("task").annotate(has_followers=Exists(followers)).order_by("pk")


def unpublished() -> Any:
    """What has no message and is not over."""
    return publishable().filter(published_at=None, task__status_code__lt=FINAL_CODE)


#: Of a chain only the job whose turn it is.
ITS_TURN = Q(follows=None) | Q(follows__task__status=Status.SUCCESS)
