"""Kills: the process of a run that was stopped and does not listen is ended, if the stop asks for that.

`stop(kill_after=…)` writes a moment into the rows of the jobs that it has stopped (`ask`). When it has passed, the
main process of the worker that still does such a run kills the process, by Celery's own way to terminate a task:
its message is acknowledged, and the pool starts another process. A pool without processes can kill nothing.

If the main process dies before that, then the processes of its pool die with it. A job that runs again by hand has
no such moment any more.
"""

import logging
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any

from celery.worker.state import active_requests
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.messages import header
from harbor_refresh.tasks.models.job import Job, State

log = logging.getLogger("harbor_refresh")


def ask(execution_ids: Collection[int], seconds: float) -> None:
    """Have the runs of stopped jobs of these executions killed after so many seconds, if they still go on. The
    caller has locked the executions, so none of their jobs begins again meanwhile."""
    stopped = Job.objects.filter(
        task__execution_id__in=execution_ids, task__status=Status.STOPPED, state=State.ENDED, run__gte=1
    )
    stopped.update(kill_at=Now() + timedelta(seconds=seconds))


def kill_due(consumer: Any) -> None:
    """Kill the runs of this worker that are due. Raises DatabaseAway."""
    with suppress(RuntimeError):  # another thread changes the set
        for request in _due(list(active_requests)):
            if getattr(getattr(consumer.pool, "_pool", None), "_pool", None):
                # in the thread that reads the results of the pool, and the broker
                consumer.call_soon(_kill, request, consumer.pool)
            else:
                _say_once_that_it_cannot()


@cache
def _say_once_that_it_cannot() -> None:
    log.warning("A stopped run cannot be killed: the pool of this worker has no processes")


def _due(requests: list[Any]) -> list[Any]:
    of_jobs = {request: header.read(request.request_dict.get(header.NAME)) for request in requests}
    tasks = {request: found[0] for request, found in of_jobs.items() if found}
    if not tasks:
        return []
    with absence_translated():
        rows = Job.objects.filter(pk__in=tasks.values(), state=State.ENDED, kill_at__lte=Now())
        due = set(rows.values_list("pk", flat=True))
    return [request for request, task_id in tasks.items() if task_id in due]


def _kill(request: Any, pool: Any) -> None:
    if request in active_requests:  # else its process does another job by now
        log.warning("Killing process %s: the run of %s was stopped and did not end", request.worker_pid, request)
        request.terminate(pool, signal="KILL")
