"""Eager mode: a job runs in the process that starts it, by `Task.apply` of Celery, as a plain task does.

Another try is put on the agenda, as a message would be put on a queue, and begins at once, whatever its countdown.
"""

import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

from celery import current_app
from django.db.models.functions import Now

from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import FINAL
from harbor_refresh.tasks.jobs.outcomes import header_of
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.without_redis import agenda

#: The executions that this process has started, and in which thread: it runs the jobs of no other.
_started: dict[int, int] = {}


def run_started(execution_ids: Iterable[int]) -> None:
    """Run the jobs of these executions too. Forget those that have ended, and those that this thread has rolled
    back; what another has started may not be committed yet."""
    here, known = threading.get_ident(), _started.copy()
    found = dict(Execution.objects.filter(pk__in=known).values_list("pk", "status"))
    for pk, thread in known.items():
        if found.get(pk) in FINAL or (pk not in found and thread == here):
            _started.pop(pk, None)
    _started.update(dict.fromkeys(execution_ids, here))
    put_next()


def put_next() -> None:
    """Have the jobs run whose turn has come, in this order, whatever their time: no other process runs them."""
    waiting = Job.objects.filter(state=JobState.WAITING, waits_for=0)
    jobs = list(waiting.filter(task__execution_id__in=[*_started]).select_related("task").order_by("pk"))
    found = waiting.filter(pk__in=[one.pk for one in jobs])  # another thread may have begun some by now
    found.update(state=JobState.SENT, sent_at=Now(), not_before=None)
    for one in jobs:
        agenda.add_run(partial(_run, one))


def _run(job: Job) -> None:
    task: Any = current_app.tasks[job.name]
    its = {"task_id": job.task.job_id, "retries": job.retries, "headers": header_of(job.pk, job.run)}
    task.apply([None], throw=False, ignore_result=True, **its)  # the run replaces it; of [] Celery makes a tuple
