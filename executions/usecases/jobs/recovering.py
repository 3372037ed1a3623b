"""Recover jobs: give back what dead nodes had begun, and see to what has not landed or was not sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from executions import signals
from executions.conf import refresh_settings
from executions.errors import DatabaseAway
from executions.queue import JobRecord, execution_queue, job_records
from executions.usecases.jobs.landing import Turn, land
from executions.usecases.jobs.publishing import Publish, publish_recorded, publishable, send
from executions.usecases.jobs.reading import Page, readable


@dataclass
class Recovered:
    given_back: int = 0
    landed: int = 0
    sent: int = 0
    unreadable: int = 0


def recover_jobs(publish: Publish) -> Recovered:
    """One pass over the jobs in progress, page by page. A database that is away ends it.

    1. A job that runs on a dead node is given back, by the record that was seen: it waits again, in a new
       revision. A node that is alive is never touched; who gives back the same at once does it once.
    2. What has not landed for longer than a node may be silent is reported again.
    3. What waits and was not sent, or should have run by now, is published again; once, for that is noted.
    4. What was recorded and never published is published.

    What if the process dies on any line: the next pass sees what is left, and does it.
    """
    total = Recovered()
    try:
        for page in job_records().all():
            _recover(page, total, publish)
        total.sent += publish_recorded(publish, doubtful=True)
    except DatabaseAway as exc:
        signals.database_away.send(sender=recover_jobs, count=0, error=str(exc))
    return total


def _recover(page: Page, total: Recovered, publish: Publish) -> None:
    look = execution_queue().stats()
    known, unreadable = readable(page)
    dead = [one for one in known if one.is_running and one.node not in look.nodes]
    others = [one for one in known if one not in dead]
    returned = _replaced([(one, one.given_back()) for one in dead])
    late = [one for one in others if _is_late(one, look.now)]
    land([Turn.of(one) for one in (*returned, *late)])
    overdue = [one for one in others if _is_overdue(one, look.now)]
    total.sent += _send_again([*returned, *overdue], publish)
    total.given_back += len(returned)
    total.landed += len(late)
    total.unreadable += unreadable


def _silent_for_long(record: JobRecord, now: int) -> bool:
    return now - record.checked_in > refresh_settings().node_ttl * 1_000_000


def _is_late(record: JobRecord, now: int) -> bool:
    """Its worker would have reported it by now, or cannot."""
    return not record.has_landed and _silent_for_long(record, now)


def _is_overdue(record: JobRecord, now: int) -> bool:
    waits = not record.is_final and not record.is_running
    return waits and not record.sent and _silent_for_long(record, now)


def _replaced(changes: Sequence[tuple[JobRecord, JobRecord]]) -> list[JobRecord]:
    done = job_records().replace(changes)
    return [new for (_, new), is_done in zip(changes, done, strict=True) if is_done]


def _send_again(waiting: Sequence[JobRecord], publish: Publish) -> int:
    if not waiting:
        return 0
    jobs = list(publishable().filter(pk__in=[one.task_id for one in waiting]))
    if jobs:
        send(publish, jobs, doubtful=True)
    now = job_records().of([one.job for one in waiting])
    job_records().replace([(one, replace(one, sent=True)) for one in now.values() if not one.sent])
    return len(jobs)
