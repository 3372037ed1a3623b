"""Recover jobs: release the jobs of dead processes, repeat late reports, and send missing messages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle import gates
from harbor_refresh.executions.status import FINAL_CODE
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.jobs.delivery.deliveries import deliver
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport, shuffled
from harbor_refresh.tasks.jobs.lifecycle.message import Publish
from harbor_refresh.tasks.jobs.lifecycle.publication import in_pages, publish_recorded, publishable, send
from harbor_refresh.tasks.jobs.lifecycle.requested_arguments import write_free_arguments
from harbor_refresh.tasks.jobs.lifecycle.task_state import TaskState, has_ended, task_states
from harbor_refresh.tasks.jobs.records import own_database
from harbor_refresh.tasks.jobs.records.arguments import Request
from harbor_refresh.tasks.jobs.records.pages import Page, readable, without_unreadable
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.records.records import Memory, job_records
from harbor_refresh.tasks.jobs.records.redis_memory import note, note_looked_up, remember
from harbor_refresh.tasks.jobs.repair.reaper import MayWait, all_may_wait, reap
from harbor_refresh.tasks.jobs.repair.tally import Tally, guarded, refused_of
from harbor_refresh.tasks.jobs.revisions import next_revision


@dataclass
class Recovered(Tally):
    given_back: int = 0
    landed: int = 0
    sent: int = 0


def recover_jobs(publish: Publish, may_wait: MayWait = all_may_wait) -> Recovered:
    """Do one pass over the jobs in progress, page by page. It ends early if the database is away.

    0. Make sure that this database has a name of its own in messages. Close open executions whose time limit has
       passed. Write the arguments that jobs have asked for: the processes that had to report them may be dead.
    1. Release each job whose run is dead, if its record is still the one that was read: it waits again, in a new
       revision. A run whose lease is renewed is never touched. If several passes release the same job, one of them
       succeeds. The database is asked first: the record of a job that has ended is deleted, or the job is asked to
       stop if it still runs.
    2. Deliver again each report that is unacknowledged for longer than a lease lasts.
    3. Publish again jobs that wait, were not sent and should have run by now. Only the pass that has released
       the job, or has updated its check-in, sends it and notes that, so it is sent once. A sent job may wait in a
       backlog for any time.
    4. Publish jobs that were recorded and never published. In a chain, publish the job whose turn it is, and end
       jobs whose turn will never come.
    5. If Redis was emptied, or came back with older data, compare it with the database as soon as every live
       process has renewed its leases; do not wait for the next pass of the reaper.

    What if the process dies on any line: the next pass finds the rest and does it.
    """
    total = Recovered()
    try:
        with absence_translated():
            gates.close_overdue()
        own_database.name()
        remembered = remember()
        memory = remembered.memory
        with absence_translated():
            note(memory)
        for requests in job_records().requests():
            guarded(total, _write_arguments, requests)
        for page in job_records().all():
            guarded(total, _recover, page, memory, publish)
        if memory.is_settled and not remembered.is_complete:
            reap(may_wait)
            with absence_translated():
                note_looked_up(memory)
        with absence_translated():
            total.sent += publish_recorded(publish)
    except DatabaseAway as exc:
        signals.database_away.send(sender=recover_jobs, count=0, error=str(exc))
    finally:
        signals.jobs_recovered.send(sender=recover_jobs, outcome=total)
    return total


def _write_arguments(total: Recovered, page: Sequence[tuple[str, Request | None]]) -> None:
    requests, unreadable = without_unreadable(page, job_records().forget_requests)
    total.unreadable += unreadable
    left: list[Request] = []
    refused = refused_of(partial(write_free_arguments, left=left), requests)
    total.troubled += len(refused)
    written = [one for one in requests if one not in refused and one not in left]
    job_records().arguments_are_written((one.job, one.arguments.revision) for one in written)


def _recover(total: Recovered, page: Page, memory: Memory, publish: Publish) -> None:
    known, unreadable = readable(page)
    total.unreadable += unreadable
    running = [one for one in known if one.is_running]
    overdue = [one for one in known if _is_overdue(one, memory.now)]
    found = task_states([one.task_id for one in (*running, *overdue)])
    over = {one.job: one for one in (*running, *overdue) if has_ended(found.get(one.task_id), one.job)}
    _end(over.values(), memory)
    dead = [one for one in running if one.job not in over and _is_dead(one, memory)]
    released = _replaced([(one, _released(one, found[one.task_id], memory.now)) for one in dead])
    total.given_back += len(released)
    late = _late([one for one in known if one not in dead and one.job not in over], memory.now)
    delivered = deliver_and_publish(shuffled(JobReport.of(one) for one in (*released, *late)))
    total.landed += delivered.count
    total.troubled += len(delivered.refused)
    taken = _replaced([(one, replace(one, checked_in=memory.now)) for one in overdue if one.job not in over])
    total.sent += _send_again([*released, *taken], publish)


def _end(over: Iterable[JobRecord], memory: Memory) -> None:
    """Settle the records of jobs that have ended: ask a live run to stop, delete all other records."""
    alive = {one.job for one in over if one.is_running and job_records().is_alive(one, memory.now)}
    job_records().stop([one.job for one in over if one.job in alive and not one.asked])
    job_records().replace([(one, None) for one in over if one.job not in alive])


def _is_dead(record: JobRecord, memory: Memory) -> bool:
    return memory.is_settled and not job_records().is_alive(record, memory.now)


def _released(record: JobRecord, state: TaskState, now: int) -> JobRecord:
    """Return the record of a released job. It waits in a new revision, or in that of the database if that is ahead
    and waits, too."""
    if state.revision > record.revision and not state.is_running:
        return record.released(now, state.revision, state.status)
    return record.released(now, next_revision(max(record.revision, state.revision), now / 1_000_000))


def _late(records: Sequence[JobRecord], now: int) -> list[JobRecord]:
    """Return the records whose workers should have reported them by now, or cannot report them."""
    return [one for one in records if not one.is_delivered and job_records().is_silent(one, now)]


def _is_overdue(record: JobRecord, now: int) -> bool:
    """Whether its message should have been sent, and the process that had to send it is gone. Updating
    `checked_in` takes the right to publish it again, so only one pass sends it."""
    return record.is_waiting and not record.sent and job_records().is_silent(record, now)


def _replaced(changes: Sequence[tuple[JobRecord, JobRecord]]) -> list[JobRecord]:
    done = job_records().replace(changes)
    return [new for (_, new), is_done in zip(changes, done, strict=True) if is_done]


def _send_again(waiting: Sequence[JobRecord], publish: Publish) -> int:
    if not waiting:
        return 0
    unfinished = publishable().filter(task__status_code__lt=FINAL_CODE)
    jobs = {one.task_id: one for one in waiting}
    count = 0
    for page in in_pages(unfinished.filter(pk__in=list(jobs))):
        deliver(send(publish, list(unfinished.filter(pk__in=page)))[1])
        _note_sent([jobs.pop(pk) for pk in page])
        count += len(page)
    _note_sent(list(jobs.values()))
    return count


def _note_sent(waiting: Sequence[JobRecord]) -> None:
    """Note that these were sent, except for a job that waits in a later revision by now."""
    sent = {one.job: one.revision for one in waiting}
    now = {job: one for job, one in job_records().of(list(sent)).items() if one.revision == sent[job]}
    job_records().replace([(one, replace(one, sent=True)) for one in now.values() if not one.sent])
