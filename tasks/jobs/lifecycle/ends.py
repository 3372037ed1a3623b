"""Ends from outside: record that a job was ended before it began or while it ran.

Only the end is recorded. The main process of a worker does not use the database, so recovery reports it.
"""

from dataclasses import replace

from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.queue.node import host_of


def end_waiting(job: str, task_id: int, revision: int, status: Status, why: str) -> bool:
    """End a waiting job whose message was dropped. A run that is under way had another message, and goes on.
    `revision` is that of the message; a job that waits in a later one has another message. True if it was
    ended."""
    records = job_records()
    now = records.memory().now
    known = records.of([job]).get(job)
    if known is None:
        return records.add(
            [JobRecord(job, revision, status, 0, now, "", task_id, None, sent=True, message=why)]
        ) == [True]
    return not known.is_running and known.revision <= revision and _end(known, status, why, now)


def end_running(job: str, host: str, status: Status, why: str) -> bool:
    """End a job whose run on this host was ended from outside. False if there was no such run: the job may have
    been given to another host meanwhile."""
    records = job_records()
    now = records.memory().now
    known = records.of([job]).get(job)
    is_here = known is not None and known.is_running and host_of(known.node) == host
    return known is not None and is_here and _end(known, status, why, now)


def send_again(job: str, task_id: int, revision: int) -> bool:
    """Request another message for a job whose message of this revision is gone, and which has not begun. It waits
    until recovery has sent one. Returns whether it does."""
    records = job_records()
    now = records.memory().now
    known = records.of([job]).get(job)
    if known is None:
        return records.add(
            [JobRecord(job, revision, Status.PENDING, 0, now, "", task_id, None, sent=False, message="")]
        ) == [True]
    waits = known.is_waiting and known.revision == revision
    return waits and records.replace([(known, replace(known, sent=False))]) == [True]


def _end(known: JobRecord, status: Status, why: str, now: int) -> bool:
    if known.is_final:
        return False
    ended = replace(known, status=status, checked_in=now, renewed=0, node="", message=why)
    return job_records().replace([(known, ended)]) == [True]
