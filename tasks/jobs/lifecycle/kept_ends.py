"""Kept ends: results and tracebacks. They are written with the report of their run, and read while no later run
has followed it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, QuerySet

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.celery_json import native
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.models.job import JobEnd

#: Results that are read together: each may have REFRESH_RESULT_BYTES.
PAGE = 50


def keep_ends(reports: Iterable[JobReport]) -> None:
    """Write what these runs have left at their end, in the transaction of their reports.

    What if the process dies before the commit: the record of the run still has it, and recovery writes and reports
    it again. What if the job was stopped, or was given to another node meanwhile: its task has another status or a
    later revision, so this end is not shown.
    """
    ends = [(report, report.kept) for report in reports if report.kept]
    if ends:
        run(
            "keep_ends",
            task_ids=[report.task_id for report, _ in ends],
            revisions=[report.revision for report, _ in ends],
            results=[json.dumps(kept.result) if kept.is_result else None for _, kept in ends],
            reasons=[kept.why_not for _, kept in ends],
            tracebacks=[kept.traceback for _, kept in ends],
        )


def _current() -> QuerySet[JobEnd]:
    return JobEnd.objects.select_related("job__task").filter(revision=F("job__task__status_revision"))


def end_of(task_id: int) -> JobEnd | None:
    """Return what is kept of the end of this task's job; None if nothing is, or if it has not ended so."""
    end = _current().filter(pk=task_id, job__task__status__in=(Status.SUCCESS, Status.ERROR)).first()
    is_error = end is not None and end.job.task.status == Status.ERROR
    return end if end is not None and is_error == bool(end.traceback) else None


def results_of(execution_id: int) -> QuerySet[JobEnd]:
    """Return the rows of the jobs that have succeeded and keep their result."""
    return _current().filter(job__task__execution_id=execution_id, job__task__status=Status.SUCCESS, traceback="")


@dataclass(frozen=True)
class JobResult:
    """What a job of an execution has returned. `why_not` is the reason if it was not kept, for example because it
    is too large; then `value` is None. `meta` is the metadata of the job."""

    task_id: int
    job: str
    value: Any
    why_not: str = ""
    meta: dict[str, Any] = field(default_factory=dict)


def results(execution_id: int) -> Iterator[JobResult]:
    """Yield the results, in the order in which the jobs were given, a page at a time. Raises NoSuchExecution."""
    place = 0
    while True:
        page = list(results_of(execution_id).filter(pk__gt=place).order_by("pk")[:PAGE])
        for end in page:
            place = end.pk
            yield JobResult(end.pk, end.job.name, native(end.result), end.why_not, end.job.task.extra_attrs)
        if len(page) < PAGE:
            break
    if not place and not Execution.objects.filter(pk=execution_id).exists():
        raise NoSuchExecution(execution_id)
