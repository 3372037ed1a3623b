"""Actions to begin with, their jobs in this process, and what is compared of them."""

from contextlib import suppress
from typing import Any
from unittest.mock import patch

from celery import current_app
from celery.exceptions import Retry

from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.news.audit import Origin, Person, Word
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.tasks.broker.celery_queues import TICKS
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.outcomes import header_of
from harbor_refresh.tasks.jobs.running import writer
from harbor_refresh.tasks.jobs.tracked_execution import TrackedExecution
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.operations.bulk import SomeFailed, ask, totals_of
from tests.integration.jobs.sample_jobs import AtOnce, beats


def asked(verb: Word = Word.STOP, origin: Origin = Origin.API, **chosen: Any) -> TrackedExecution:
    return ask(verb, Filter(**chosen), Person("a test", origin), everything=not chosen)


def actions() -> Any:
    return Execution.objects.filter(vendor_type=BULK)


def work_off(most: int = 1_000) -> None:
    """Do so many jobs of actions in this process, one after the other, until none is left."""
    beats(this_worker.id, queues=[TICKS])
    with patch.object(writer.of_this_process, "get", AtOnce):
        for _ in range(most):
            sent = Job.objects.filter(task__vendor_type=BULK, state=JobState.SENT)
            if (job := sent.select_related("task").order_by("pk").first()) is None:
                break
            task = current_app.tasks[job.name]
            request = {"id": job.task.job_id, "called_directly": False, "delivery_info": {}}
            task.push_request(**request, args=[], kwargs={}, **header_of(job.pk, job.run))
            try:
                with suppress(SomeFailed, Retry):
                    task()
            finally:
                task.pop_request()
    refresh(actions().values_list("pk", flat=True))


def result(action: Execution) -> dict[str, Any]:
    """The status, and the counts that are not zero."""
    action.refresh_from_db()
    totals = totals_of(action.pk) or {}
    counts = {name: totals.get(name, 0) for name in ("changed", "skipped", "failed")}
    return {"status": action.status, **{name: count for name, count in counts.items() if count}}
