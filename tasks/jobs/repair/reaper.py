"""Reap: compare the records in Redis with what the database has acknowledged, and resolve the differences."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction

from harbor_refresh.executions.status import FINAL_CODE, Status
from harbor_refresh.tasks import pacing, signals
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport, shuffled
from harbor_refresh.tasks.jobs.lifecycle.task_state import task_states
from harbor_refresh.tasks.jobs.options import is_moment, is_seconds, moment_of
from harbor_refresh.tasks.jobs.records.pages import Page, readable
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.records.records import PAGE, Memory, job_records
from harbor_refresh.tasks.jobs.repair.tally import Tally, guarded
from harbor_refresh.tasks.models.job import Job
from harbor_refresh.tasks.queue.clock import at

PATIENCE_TTLS = 30

#: Returns the keys of the jobs, among these, whose message may still wait in the broker.
MayWait = Callable[[Sequence[Job]], Collection[int]]


def all_may_wait(jobs: Sequence[Job]) -> Collection[int]:
    """Return all. For a caller that cannot ask the broker: it sends no second message to a queue that no worker
    serves for days."""
    return [job.pk for job in jobs]


@dataclass
class Reaped(Tally):
    """What a pass did, counted by what it found."""

    reported: int = 0
    forgotten: int = 0
    failed: int = 0
    taken: int = 0
    lost: int = 0
    unsent: int = 0


def reap(may_wait: MayWait = all_may_wait, sent_before: int = 0) -> Reaped:
    """Do one pass over all jobs in progress, in pages. If a page fails, it is logged, and the pass goes on.

    A message was sent long ago if it was sent before `sent_before` (us), or so long ago that no worker would still
    hold it.

    | its record is                                             | then                                       |
    | --------------------------------------------------------- | ------------------------------------------ |
    | ahead of the last delivered report, or there is none      | it is reported again                       |
    | as the last delivered report, and final                   | it is deleted                              |
    | as that report, not final, and silent for too long        | it fails, with that reason                 |
    | behind the last delivered report                          | it is brought to that report               |
    | gone, and the job was running                             | a record is written that says that it runs |
    |                                                           | on an unknown node. The process that runs  |
    |                                                           | it replaces the record; otherwise recovery |
    |                                                           | releases the job                           |
    | gone, and its message was sent before Redis was emptied   | the message is sent again (job_recovery.py)|
    | waits, and its message was sent long ago and is gone      | the same                                   |

    "Ahead" and "behind" are by revision, then status code, then check-in. A record is changed only if it is still
    the one that was read, so a job that moves on meanwhile stays as it is.
    """
    total = Reaped()
    records = job_records()
    memory = records.memory()
    long_ago = max(memory.now - _patience(), sent_before)
    try:
        for page in records.all():
            guarded(total, _settle, page, memory, may_wait, long_ago)
        for jobs in _published():
            guarded(total, _look_for, jobs, memory, may_wait, long_ago)
    finally:
        signals.reaped.send(sender=reap, outcome=total)
    return total


def _settle(total: Reaped, page: Page, memory: Memory, may_wait: MayWait, long_ago: int) -> None:
    now, silence = memory.now, _silence()
    changes: list[tuple[JobRecord, JobRecord | None]] = []
    ahead: list[JobRecord] = []
    known, unreadable = readable(page)
    total.unreadable += unreadable
    for record in known:
        acknowledged = record.acknowledged
        if acknowledged is None or record.rank > acknowledged.rank:
            ahead.append(record)
        elif record.rank < acknowledged.rank and not record.is_delivered:
            # without its message, which belongs to the older revision
            taken = replace(
                record, revision=acknowledged.revision, status=acknowledged.status, node="", message=""
            )
            changes.append((record, None if taken.is_final else taken))
            total.taken += 1
        elif record.is_final:
            changes.append((record, None))
            total.forgotten += 1
        elif record.is_running and now - record.checked_in > silence:
            reason = f"nothing was heard of it for {refresh_settings().job_hours:g} hours"
            failed = replace(record, status=Status.ERROR, message=reason)
            changes.append((record, failed))
            ahead.append(failed)
            total.failed += 1
    unsent = _without_message(known, memory, may_wait, long_ago)
    changes += [(one, replace(one, sent=False, checked_in=now)) for one in unsent]
    total.unsent += len(unsent)
    done = job_records().replace(changes)
    outdone = {old.job for (old, _), is_done in zip(changes, done, strict=True) if not is_done}
    delivered = deliver_and_publish(shuffled(JobReport.of(one) for one in ahead if one.job not in outdone))
    total.reported += delivered.count
    total.troubled += len(delivered.refused)


def _without_message(
    records: Sequence[JobRecord], memory: Memory, may_wait: MayWait, long_ago: int
) -> list[JobRecord]:
    """Return jobs that wait for a message that was sent before the epoch, or long ago to a queue that is empty."""
    waits = [one for one in records if one.is_delivered and one.is_waiting and one.sent]
    forgotten = [one for one in waits if one.checked_in < memory.epoch]
    old = {one.task_id: one for one in waits if one.checked_in < long_ago}
    if not old:
        return forgotten
    still_there = may_wait(list(Job.objects.defer("args", "kwargs", "handed_on").filter(pk__in=old)))
    return [*forgotten, *(one for pk, one in old.items() if pk not in still_there and one not in forgotten)]


def _look_for(total: Reaped, jobs: Sequence[Job], memory: Memory, may_wait: MayWait, long_ago: int) -> None:
    """Inspection for jobs that must have a record, if they run, or a message, if they wait."""
    records = job_records()
    known = records.of([job.task.job_id for job in jobs])
    gone = [job for job in jobs if job.task.job_id not in known]
    running = [job.pk for job in gone if job.task.status == Status.RUNNING]
    # the database is asked after Redis, so a job that has ended since gets no record
    still_running = [state for state in task_states(running).values() if state.is_running]
    total.lost += sum(records.add([state.record_on_unknown_node(memory.now) for state in still_running]))
    waiting = [job for job in gone if job.task.status != Status.RUNNING]
    began = at(memory.epoch)
    forgotten = {job.pk for job in waiting if _published_at(job) < began}
    old = [job for job in waiting if job.pk not in forgotten and _due_at(job) < at(long_ago)]
    unsent = forgotten | {job.pk for job in old} - set(may_wait(old) if old else ())
    total.unsent += _ask_for_another_message(unsent)


def _ask_for_another_message(unsent: Collection[int]) -> int:
    """Have these jobs published again, if they still wait. Returns how many.

    What if two passes do it at once, or a job is published, retried or reported at this moment: its row is locked,
    and left to the next pass. A pass that waits for no row deadlocks with none.
    """
    with transaction.atomic():
        waiting = Job.objects.filter(pk__in=unsent, task__status_code__lt=Status.RUNNING.code).order_by("pk")
        free = waiting.select_for_update(of=("self",), no_key=True, skip_locked=True).values_list("pk", flat=True)
        return waiting.filter(pk__in=list(free)).update(published_at=None)


def _published_at(job: Job) -> datetime:
    assert job.published_at  # noqa: S101  # of `_published`
    return job.published_at


def _due_at(job: Job) -> datetime:
    """Return when its message should have reached a worker, if nothing else delayed it."""
    published, later, eta = _published_at(job), job.options.get("countdown"), job.options.get("eta")
    if is_moment(eta):
        return max(published, moment_of(eta))
    return published + timedelta(seconds=later if is_seconds(later) else 0)


def _patience() -> int:
    """Return the microseconds that a worker may hold a message before it begins. Another message is harmless."""
    return round(pacing.NODE_TTL_SECONDS * PATIENCE_TTLS * 1_000_000)


def _silence() -> int:
    """Return the microseconds that a job in progress may be silent."""
    return round(refresh_settings().job_hours * 3600 * 1_000_000)


def _published() -> Iterator[Sequence[Job]]:
    """Yield jobs whose task is not final and that have had a message, in pages."""
    last = 0
    while True:
        jobs = Job.objects.select_related("task").defer("args", "kwargs", "handed_on")
        jobs = jobs.filter(pk__gt=last, published_at__isnull=False)
        page = list(jobs.filter(task__status_code__lt=FINAL_CODE).order_by("pk")[:PAGE])
        if not page:
            return
        last = page[-1].pk
        yield page
