"""Recover jobs: give back what dead nodes had begun, and see to what has not landed or was not sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from executions import signals
from executions.conf import refresh_settings
from executions.database import absence_translated
from executions.errors import DatabaseAway
from executions.models import Task
from executions.queue import JobRecord, execution_queue, job_records
from executions.status import FINAL_CODE
from executions.usecases.jobs.landing import land
from executions.usecases.jobs.publishing import Publish, publish_recorded, publishable, send
from executions.usecases.jobs.reading import Page, readable
from executions.usecases.jobs.reaping import reap
from executions.usecases.jobs.tally import Tally, guarded
from executions.usecases.jobs.turn import Turn, shuffled


@dataclass
class Recovered(Tally):
    given_back: int = 0
    landed: int = 0
    sent: int = 0


def recover_jobs(publish: Publish) -> Recovered:
    """One pass over the jobs in progress, page by page. A database that is away ends it.

    1. A job that runs on a dead node is given back, by the record that was seen: it waits again, in a new
       revision. A node that is alive is never touched; who gives back the same at once does it once. If the
       database says that the job has ended, its record was late: it is forgotten.
    2. What has not landed for longer than a node may be silent is reported again.
    3. What waits and was not sent, or should have run by now, is published again. Once: who has given it back, or
       checked it in, sends it, and notes that. It waits in a backlog for as long as that is.
    4. What was recorded and never published is published.
    5. A Redis that was emptied is compared with the database at once, and not with the reaper's next pass: as
       soon as whatever is alive has told it again what it runs.

    What if the process dies on any line: the next pass sees what is left, and does it.
    """
    total = Recovered()
    try:
        for page in job_records().all():
            guarded(total, _recover, page, publish)
        memory = job_records().memory()
        if not memory.is_complete and not memory.is_fresh:
            reap()
        with absence_translated():
            total.sent += publish_recorded(publish, doubtful=True)
    except DatabaseAway as exc:
        signals.database_away.send(sender=recover_jobs, count=0, error=str(exc))
    finally:
        signals.jobs_recovered.send(sender=recover_jobs, outcome=total)
    return total


def _recover(total: Recovered, page: Page, publish: Publish) -> None:
    look = execution_queue().stats()
    known, unreadable = readable(page)
    total.unreadable += unreadable
    dead = [one for one in known if one.is_running and one.node not in look.nodes]
    over = _over(dead)
    job_records().replace([(one, None) for one in dead if one.job in over])
    returned = _replaced([(one, one.given_back(look.now)) for one in dead if one.job not in over])
    total.given_back += len(returned)
    others = [one for one in known if one not in dead]
    landed = land(shuffled(Turn.of(one) for one in (*returned, *_late(others, look.now))))
    total.landed += landed.count
    total.troubled += len(landed.refused)
    overdue = [one for one in others if _is_overdue(one, look.now)]
    mine = _replaced([(one, replace(one, checked_in=look.now)) for one in overdue])
    total.sent += _send_again([*returned, *mine], publish)


def _over(records: Sequence[JobRecord]) -> set[str]:
    """Jobs that have ended in the revision of their record, or a later one; or whose task was deleted."""
    if not records:
        return set()
    found = Task.objects.filter(pk__in=[one.task_id for one in records])
    tasks = {task.pk: task for task in found.only("status_code", "status_revision")}

    def is_over(record: JobRecord) -> bool:
        task = tasks.get(record.task_id)
        return task is None or (task.status_code == FINAL_CODE and task.status_revision >= record.revision)

    return {one.job for one in records if is_over(one)}


def _silent_for_long(record: JobRecord, now: int) -> bool:
    return now - record.checked_in > refresh_settings().node_ttl * 1_000_000


def _late(records: Sequence[JobRecord], now: int) -> list[JobRecord]:
    """Their workers would have reported them by now, or cannot."""
    return [one for one in records if not one.has_landed and _silent_for_long(one, now)]


def _is_overdue(record: JobRecord, now: int) -> bool:
    """Its message should have been sent, and whoever was to send it is gone. To check it in is to be that one."""
    waits = not record.is_final and not record.is_running
    return waits and not record.sent and _silent_for_long(record, now)


def _replaced(changes: Sequence[tuple[JobRecord, JobRecord]]) -> list[JobRecord]:
    done = job_records().replace(changes)
    return [new for (_, new), is_done in zip(changes, done, strict=True) if is_done]


def _send_again(waiting: Sequence[JobRecord], publish: Publish) -> int:
    if not waiting:
        return 0
    unfinished = publishable().filter(task__status_code__lt=FINAL_CODE)
    jobs = list(unfinished.filter(pk__in=[one.task_id for one in waiting]))
    if jobs:
        land(send(publish, jobs, doubtful=True)[1])
    now = job_records().of([one.job for one in waiting])
    job_records().replace([(one, replace(one, sent=True)) for one in now.values() if not one.sent])
    return len(jobs)
