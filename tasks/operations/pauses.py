"""Pause a queue, resume it, and say which queues are paused.

A pause is a row in PostgreSQL, because it must outlive a worker's restart and an emptied Redis. It is read before
work begins: by a tick that claims executions, by the sender of jobs (pick.sql), and by a run of
deliveries or handlers. Work that has begun goes on. Plain Celery tasks are not paused, nor are *Refresh now*, a
report that stops a task, a status that is set by hand, and the sweep: these refresh in their own process.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from celery import current_app
from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import NoSuchQueue, QueueUnavailable, Refused
from harbor_refresh.executions.models.operations import MAX_NAME
from harbor_refresh.executions.news.audit import Person, Target, Word, noted
from harbor_refresh.executions.text import is_text, storable
from harbor_refresh.tasks.broker.celery_queues import CYCLES, DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.sender import queues_with_jobs
from harbor_refresh.tasks.jobs.sql import run as run_of_jobs
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.job import Node
from harbor_refresh.tasks.models.state import MAX_REASON
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.sql import run

#: With `lasts`: how long each has been paused, by the clock of the database.
LASTS = ExpressionWrapper(Now() - F("at"), DurationField())
PAUSES = Pause.objects.annotate(lasts=LASTS).order_by("at", "queue")  # type: ignore[no-redef]  # it is declared


def paused() -> Mapping[str, Pause]:
    """Return the paused queues by name, with `lasts`. Raises DatabaseDown."""
    with absence_translated():
        return {row.queue: row for row in PAUSES.all()}


def is_refreshing_paused() -> bool:
    """Raises DatabaseDown, also for a server that takes no writes."""
    with absence_translated():
        return bool(run("refreshing_is_paused", queue=WORK))


def pause(queue: str, person: Person, reason: str = "") -> bool:
    """Pause the queue. False if it is paused already; then the first pause and its reason stand.

    Jobs that were sent, and have not begun, wait again in the same transaction. If two people pause it at
    once, then one row is written, and one entry of the log of actions. If a tick has read the rows a moment
    before, then it claims once more, no more than the workers have room for.
    """
    _refuse(queue, reason)
    reason, by = _in_one_line(reason), _in_one_line(person.name)[:MAX_NAME]
    with noted(person, Word.PAUSE, Target.QUEUE, queue) as entry:
        written = run("pause_queue", queue=queue, by=by, reason=reason)
        entry.skip, entry.detail = not written, reason
        if written:
            run_of_jobs("sending/unsend")
            transaction.on_commit(partial(signals.queue_paused.send, pause, queue=queue, by=by, reason=reason))
    return bool(written)


def resume(queue: str, person: Person) -> bool:
    """Resume the queue. False if it is not paused.

    Within seconds workers send the jobs that waited, and recovery wakes a deliverer. If the process dies after
    the commit and before the wake-up, then the scheduled tick claims.
    """
    with noted(person, Word.RESUME, Target.QUEUE, queue) as entry:
        row = PAUSES.select_for_update().filter(queue=queue).first() if storable(queue) else None
        entry.skip = not row
        if row:
            row.delete()
            told = {"queue": queue, "by": _in_one_line(person.name), "lasted": row.lasts}
            transaction.on_commit(partial(signals.queue_resumed.send, resume, **told))
            if queue == WORK:
                transaction.on_commit(_wake)
    return bool(row)


def known_queues() -> list[str]:
    """Return the queues that the settings of the Celery app declare, and then those that a live worker takes from,
    that are paused, or that have jobs to send or to begin. Raises DatabaseDown."""
    with absence_translated():
        found = {*Pause.objects.values_list("queue", flat=True)}
        found.update(*Node.objects.values_list("queues", flat=True))
    found.update(queues_with_jobs())
    conf = current_app.conf
    declared = [*(queue.name for queue in conf.task_queues or ()), conf.task_default_queue]
    return list(dict.fromkeys([*declared, *sorted(found - {CYCLES.name})]))


WORK_OF = {
    WORK: "Refreshing",
    JOBS: "Jobs that name no other queue",
    DELIVERIES: "Notifications and handlers",
    TICKS: "Claims, recovery, reconcile; never paused",
}


def name_of(queue: str) -> str:
    """Name the queue at the beginning of a sentence."""
    return "Refreshing" if queue == WORK else f"The queue {queue}"


def what_of(queue: str) -> str:
    """Say what the work of a queue is."""
    return WORK_OF.get(queue, f"Jobs of the queue {queue}")


def _refuse(queue: str, reason: str) -> None:
    """Raise Refused unless the queue can be paused."""
    if not is_text(reason, MAX_REASON):
        raise Refused(f"a reason takes text of at most {MAX_REASON} characters")
    if queue == TICKS:
        raise Refused(f"{TICKS} cannot be paused: its ticks repair what crashes leave behind")
    if queue == WORK and refresh_settings().in_process:
        raise Refused("the interval is 0 or less: the reporting process refreshes, so there is nothing to pause")
    if queue not in (there := known_queues()):
        raise NoSuchQueue(f"no worker takes from a queue of that name; there are {', '.join(there)}")


def _in_one_line(text: str) -> str:
    """A name or a reason is shown in a log line, and must not begin another one."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _wake() -> None:
    """Send a tick for what has waited. If Redis is down, the scheduled tick claims."""
    with suppress(QueueUnavailable):
        wakeup.check(ignore_pending_wake=True)
