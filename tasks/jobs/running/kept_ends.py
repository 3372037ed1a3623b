"""What is kept of the end of a run besides its status: the result of a success, the traceback of an error.

It is written with the end (outcomes.py), and read while no later run has followed it.
"""

import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Q, QuerySet

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import json_text, made_storable
from harbor_refresh.tasks.broker.redaction import redacted
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.starting.celery_json import as_json, native
from harbor_refresh.tasks.models.job import JobEnd

#: Results that are read together: each may have REFRESH_RESULT_BYTES.
PAGE = 50
#: In characters. Of a longer traceback the end is kept, because it has the error.
MAX_TRACEBACK = 8_000
CUT = "[the beginning was cut]\n"
#: So much of a traceback is searched for secrets. More than is kept, so that none is cut in two before that.
MAX_SEARCHED = 50_000
MAX_REASON = 300


def kept_result(result: Any) -> JobEnd:
    """Return the result, or why it cannot be kept: the job has succeeded anyway."""
    try:
        value = as_json(result)
        native(value)  # it may be a form that cannot be read again
        size, most = len(json_text(value).encode()), refresh_settings().result_bytes
    except Exception as exc:  # of a type of the project
        return JobEnd(why_not=made_storable(f"it cannot be kept as JSON: {exc}")[:MAX_REASON])
    if size > most:
        return JobEnd(why_not=f"it takes {size:,} bytes, and REFRESH_RESULT_BYTES is {most:,}")
    return JobEnd(result=value)


def kept_traceback(exc: BaseException, runner: str) -> JobEnd | None:
    """Return the traceback of a job from its own code on, without secrets: the frames of the module `runner`,
    which has called it, are left out. None if it cannot be written: the job ends anyway."""
    with suppress(Exception):
        own_code = exc.__traceback__
        while own_code and own_code.tb_next and own_code.tb_frame.f_globals.get("__name__") == runner:
            own_code = own_code.tb_next
        text = "".join(traceback.format_exception(type(exc), exc, own_code))
        text = made_storable(redacted(text[-MAX_SEARCHED:]))
        if len(text) > MAX_TRACEBACK:
            text = CUT + text[len(CUT) - MAX_TRACEBACK :]
        return JobEnd(traceback=text)
    return None


def write(ends: Iterable[tuple[int, int, JobEnd]]) -> None:
    """Write the ends of runs that are held, by their task and revision. Each replaces that of an earlier run."""
    rows = []
    for task_id, revision, end in ends:
        end.job_id, end.revision = task_id, revision
        rows.append(end)
    columns = ("revision", "result", "why_not", "traceback")
    JobEnd.objects.bulk_create(rows, update_conflicts=True, unique_fields=("job",), update_fields=columns)


def _current() -> QuerySet[JobEnd]:
    return JobEnd.objects.select_related("job__task").filter(revision=F("job__task__status_revision"))


def end_of(task_id: int) -> JobEnd | None:
    """Return what is kept of the end of this task's job; None if nothing is, or if it has not ended so."""
    of_error = Q(job__task__status=Status.ERROR) & ~Q(traceback="")
    return _current().filter(Q(job__task__status=Status.SUCCESS, traceback="") | of_error, pk=task_id).first()


def kept_results() -> QuerySet[JobEnd]:
    """Return the rows of the jobs that have succeeded and keep their result."""
    return _current().filter(job__task__status=Status.SUCCESS, traceback="")


def results_of(execution_id: int) -> QuerySet[JobEnd]:
    return kept_results().filter(job__task__execution_id=execution_id)


@dataclass(frozen=True)
class JobResult:
    """The result of a job.

    Attributes:
        task_id: The id of its task.
        job: The name of its Celery task.
        value: What it returned; None if that was not kept.
        why_not: Why the value was not kept, for example because it is too large.
        meta: The metadata of the job.
    """

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
