"""Publication: send a message for every recorded job that has none."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, Func, IntegerField, OuterRef, Q, TextField
from django.db.models.functions import Cast, Coalesce, Now

from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import FINAL_CODE, Status
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.jobs.delivery.deliveries import deliver
from harbor_refresh.tasks.jobs.lifecycle.chains import stop_broken, waiting_behind_ended, without_record
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.message import LATER, Message, Publish
from harbor_refresh.tasks.jobs.records.records import PAGE, Memory, job_records
from harbor_refresh.tasks.jobs.records.redis_memory import note, remember
from harbor_refresh.tasks.jobs.repair.tally import refused_of
from harbor_refresh.tasks.jobs.runtime import broker, eager
from harbor_refresh.tasks.models.job import Job
from harbor_refresh.tasks.queue.clock import at
from harbor_refresh.tasks.queue.sets import pages, sized_pages
from harbor_refresh.tasks.without_redis import mode

log = logging.getLogger("harbor_refresh")

#: The most bytes of arguments in one page of PAGE jobs or less. A job with more bytes is a page by itself.
PAGE_BYTES = 8_000_000


def publish_after_commit(
    *, execution_id: int | None = None, after: Sequence[int] | None = None, only: Sequence[int] | None = None
) -> None:
    """Publish for a caller whose own work is done: if the broker is away, log it and do not raise. Recovery
    publishes jobs without a message a few seconds later."""
    try:
        publish_recorded(execution_id=execution_id, after=after, only=only)
    except RefreshError as exc:
        log.warning("Could not publish jobs, they will be a few seconds later: %s", exc)
    except Exception as exc:  # any error of the broker's client
        log.warning("Could not publish jobs, they will be a few seconds later: %s: %s", type(exc).__name__, exc)


def publish_recorded(
    publish: Publish = broker.publish,
    *,
    execution_id: int | None = None,
    after: Sequence[int] | None = None,
    only: Sequence[int] | None = None,
) -> int:
    """Publish jobs without a message: those of one execution, those that follow these tasks, or all. Of all, jobs
    younger than the node's ttl are left out, because the process that recorded them is still publishing them.
    `only`: of the execution, these jobs, so that an addition costs what it adds and not what is there.

    For each page: lock, publish, note it, commit. Jobs that another process is publishing are skipped.

    What if the process dies after it has published and before the commit: the page is published again, and the
    second message of a job finds that it runs or has ended. Returns how many messages were sent.
    """
    if after is not None:
        which = [Q(follows__in=page) for page in pages(after, PAGE)]
    elif only is not None:
        which = [Q(pk__in=page) for page in pages(only, PAGE)]
    elif execution_id is not None:
        unfinished = Task.objects.filter(execution_id=execution_id, status_code__lt=FINAL_CODE).order_by("pk")
        which = [Q(pk__in=page) for page in pages(unfinished.values_list("pk", flat=True), PAGE)]
    else:
        return _publish_all(publish)
    return sum(_publish_these(publish, jobs) for jobs in which)


def _publish_all(publish: Publish) -> int:
    """Publish all jobs whose turn it is, page by page. Before that, end chains that were broken."""
    a_moment_ago = Q(task__creation_time__lt=Now() - timedelta(seconds=pacing.NODE_TTL_SECONDS))
    behind = _waiting_behind_success()
    count, last = _publish_these(publish, Q(pk__in=behind) & a_moment_ago), 0
    while True:
        ready = unpublished().filter(MAY_HAVE_ITS_TURN, ITS_TURN, a_moment_ago, pk__gt=last)[:PAGE]
        pages = list(in_pages(ready))
        if not pages:
            return count
        count += sum(_publish_page(publish, page) for page in pages)
        last = pages[-1][-1]


def _waiting_behind_success() -> list[int]:
    """Return the jobs that wait behind a task that has succeeded. End jobs whose turn will never come: the task
    before them has not succeeded, or its result was lost."""
    waiting = waiting_behind_ended()
    broken = [one.before_id for one in waiting if not one.is_behind_success]
    refused_of(stop_broken, broken)
    behind = [one for one in waiting if one.is_behind_success]
    refused_of(partial(stop_broken, are_lost=True), without_record(behind))
    return [one.task_id for one in behind]


def _publish_these(publish: Publish, which: Q) -> int:
    found = unpublished().filter(which, ITS_TURN)
    return sum(_publish_page(publish, page) for page in in_pages(found))


def _publish_page(publish: Publish, page: Sequence[int]) -> int:
    if mode.is_on():
        return _publish_page_here(publish, page)
    with transaction.atomic():
        found = unpublished().filter(ITS_TURN, pk__in=page)
        jobs = list(found.select_for_update(of=("self",), skip_locked=True))
        if not jobs:
            return 0
        memory, reports = send(publish, jobs)
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(published_at=at(memory.now))
        note(memory)  # last: other publishers wait for this row
    deliver(reports)
    return len(jobs)


def _publish_page_here(publish: Publish, page: Sequence[int]) -> int:
    """Publish without Redis, to a broker in this process, or to its agenda. A message is sent after the commit,
    because a worker in another thread reads the row at once."""
    with transaction.atomic():
        jobs = list(unpublished().filter(ITS_TURN, pk__in=page).select_for_update(of=("self",), skip_locked=True))
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(published_at=Now())
    messages = [Message.of(job, "") for job in jobs]
    if mode.is_eager():
        eager.publish(messages)
    else:
        deliver(_reports_of(messages, publish))
    return len(jobs)


def in_pages(jobs: Any) -> Iterator[list[int]]:
    """Yield the keys of these jobs, in pages whose arguments may be loaded and published together."""
    return sized_pages(jobs.values_list("pk", BYTES), PAGE_BYTES)


def send(publish: Publish, jobs: Sequence[Job]) -> tuple[Memory, list[JobReport]]:
    """Send the messages of these jobs, which are `publishable`. Returns the memory, which the caller notes, and
    the reports that result: a job that runs later is Scheduled, a job whose message cannot be made has failed.
    """
    remembered = remember()
    before = remembered.memory
    reports = _reports_of([Message.of(job, remembered.database) for job in jobs], publish)
    # advanced once more, so that a Redis restored to the moment before these messages is older than the note
    return replace(job_records().memory(), now=before.now), reports


def _reports_of(messages: Sequence[Message], publish: Publish) -> list[JobReport]:
    reports = [
        JobReport(one.job, one.task_id, one.revision, Status.SCHEDULED)
        for one in messages
        if one.options.keys() & {*LATER}
    ]
    return reports + [
        JobReport(one.job, one.task_id, one.revision, Status.ERROR, f"its message cannot be made: {why}")
        for one, why in publish(messages) or ()
    ]


def publishable() -> Any:
    """Return jobs with all that a message needs."""
    followers = Job.objects.filter(follows=OuterRef("pk"))
    return Job.objects.select_related("task").annotate(has_followers=Exists(followers)).order_by("pk")


def unpublished() -> Any:
    """Return jobs that have no message and are not final."""
    return publishable().filter(published_at=None, task__status_code__lt=FINAL_CODE)


def _bytes_of(column: str) -> Any:
    return Func(Cast(column, TextField()), function="octet_length", output_field=IntegerField())


BYTES = _bytes_of("args") + _bytes_of("kwargs") + Coalesce(_bytes_of("handed_on"), 0)

#: In a chain, only the job whose turn it is: the task before it has succeeded, and the result that the job takes
#: was written by the current run of that task, or by a later one.
ITS_TURN = Q(follows=None) | (
    Q(follows__task__status=Status.SUCCESS)
    & (Q(takes_result=False) | Q(handed_on_revision__gte=F("follows__task__status_revision")))
)
#: The part of that condition that has an index.
MAY_HAVE_ITS_TURN = Q(follows=None) | Q(handed_on_revision__isnull=False)
