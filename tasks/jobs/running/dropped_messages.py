"""End the jobs whose messages Celery drops, and those that it ends without their code.

The main process of a worker drops a message that was revoked, whose task it does not know, or that it cannot read.
It kills a run that exceeds its hard limit. The code of the job never learns of it. If the database is down, or the
task stays locked, that is logged: a job without a run is sent again later, and a run whose process was killed is
released. Of a body that cannot be decoded Celery says nothing, so its job is sent again, too.
"""

import logging
import time
from typing import Any

from billiard.exceptions import TimeLimitExceeded
from celery.worker import state
from celery.worker.request import Request

from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.creation import MAX_JOB_ID
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import is_text, made_storable, said_by
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.outcomes import HEADER, MAX_MESSAGE, Outcome, Run, run_of, take_apart
from harbor_refresh.tasks.pipeline.own_connections import beside_the_pool

log = logging.getLogger("harbor_refresh")


class TrackedRequest(Request):
    """The request of a job, which the main process of a worker keeps while another process runs it."""

    def on_timeout(self, soft: bool, timeout: float) -> Any:
        """Write a hard limit before Celery acknowledges the message. If this process dies in between, the run is
        released."""
        if not soft and not state.should_terminate:
            header, why = self.request_dict.get(HEADER), said_by(TimeLimitExceeded(timeout))
            end(self.id, header, Status.ERROR, why, has_begun=True, process=self.worker_pid)
        return super().on_timeout(soft, timeout)


def on_revoked(request: Any, terminated: bool, **_: Any) -> None:
    why = "it was revoked while it ran" if terminated else "it was revoked"
    end(request.id, request.get(HEADER), Status.STOPPED, why, has_begun=terminated)


def on_dropped(message: Any, exc: Exception | None = None, name: str = "", **_: Any) -> None:
    """End the job of a message that Celery has rejected: of an unknown task, or one that it cannot read."""
    fields = message.headers if isinstance(message.headers, dict) else {}
    why = f"its message cannot be used: {exc}" if exc else "its message cannot be used"
    if name:
        why = f"the worker that got it knows no task {name!r}"
    end(fields.get("id"), fields.get(HEADER), Status.ERROR, why)


#: The end of a run is tried for so long while its task is locked, because another end may hold it for a moment.
LOCKED_SECONDS, TRY_SECONDS = 0.5, 0.05


def end(job: Any, header: Any, status: Status, why: str, *, has_begun: bool = False, process: Any = None) -> None:
    """End the job of a dropped message, if no run has begun: sent -> ended; or its run, which `has_begun` and
    whose process is killed, in this process if it is known: running -> ended. A message that names no job ends
    none. Log that the database is down, or refuses, and do not raise: it must not end the worker. Nor may it wait
    for the end of a long transaction, because nothing else answers the broker: it tries a run's end again for
    LOCKED_SECONDS."""
    found = run_of(header)
    if found is None or not is_text(job, MAX_JOB_ID, at_least=1):
        return
    task_id, number = found
    its = Run(task_id, job, number)
    if has_begun:
        its = Run(task_id, job, number + 1, worker=this_worker.id, process=process)
    why, until = made_storable(why)[:MAX_MESSAGE], time.monotonic() + LOCKED_SECONDS * has_begun
    try:
        with beside_the_pool():  # the main process keeps no connection
            while is_locked := bool(take_apart([Outcome(its, status, why)]).left):
                if time.monotonic() >= until:
                    break
                time.sleep(TRY_SECONDS)
        trouble = "its task is locked" if is_locked else ""
    except DatabaseDown as exc:
        trouble = str(exc)
    if trouble:
        log.warning("Could not write of task %d that %s: %s", task_id, why, trouble)
