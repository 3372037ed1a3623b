"""start: an execution of jobs, from their signatures."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from harbor_refresh.executions.database import missing_translated
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.creation import NewExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.text import shown
from harbor_refresh.tasks.jobs.end_callbacks import callbacks_of
from harbor_refresh.tasks.jobs.starting import job_rows
from harbor_refresh.tasks.jobs.starting.canvas import Given, parts_of
from harbor_refresh.tasks.jobs.starting.fairness import turns_of
from harbor_refresh.tasks.jobs.terms import terms_of
from harbor_refresh.tasks.jobs.tracked_execution import TrackedExecution, asynchronous
from harbor_refresh.tasks.strategies import strategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery.canvas import Signature

    Callbacks = Signature[Any] | Sequence[Signature[Any]] | None

#: An open execution that is not closed ends after a day, if `close_after` says nothing else.
CLOSE_AFTER = 24 * 3600.0


def start(
    vendor_type: str,
    *,
    jobs: Given = None,
    vendor_id: int | str | UUID = 0,
    trigger: str = "MANUAL",
    extra_attrs: dict[str, Any] | None = None,
    open: bool = False,
    close_after: float | None = None,
    parent: Execution | None = None,
    once: str = "",
    weight: float = 1,
    fair_by: str | None = None,
    deadline: float | datetime | str | None = None,
    on_failure: str = "continue",
    on_first_error: "Callbacks" = None,
    on_success: "Callbacks" = None,
    on_error: "Callbacks" = None,
    on_complete: "Callbacks" = None,
) -> TrackedExecution:
    """Start an execution of these jobs.

    The execution and its jobs are recorded in one transaction, and the jobs are sent to the broker after its
    commit. If a job cannot be stored, sent or run, Refused is raised and nothing is written.

    Args:
        vendor_type: The kind of work, such as `"REPLICATION"`.
        jobs: Signatures of tracked jobs; chains, groups and chords of them; jobs that need others (`job`); or
            a single one of these.
        vendor_id: The object that the execution is for: a number, a UUID or text.
        trigger: What started it, as text.
        extra_attrs: JSON that is kept with the execution.
        open: Whether jobs may be added later. An open execution ends after `close()`.
        close_after: The seconds after which an open execution is closed and ends as Error; a day by default.
        parent: An unfinished execution, such as `job.execution`. The new execution counts as one of its tasks.
        once: A name within the vendor type, or within the parent. If an execution already has this name, it is
            returned with `is_new` False, and nothing is started.
        weight: How many turns the execution gets for each turn of another one.
        fair_by: The name of a tenant. All executions of a tenant share the turns of one execution.
        deadline: Seconds from now, or a moment. Jobs that have not ended by then are stopped.
        on_failure: `"continue"`, or `"stop"` to stop the other jobs when one has failed, except `even_if_failed`
            jobs and those behind them.
        on_first_error: Plain Celery tasks that are called when the first job has failed.
        on_success: Plain Celery tasks that are called, at least once, after an end as Success.
        on_error: The same for Error.
        on_complete: The same for any end.
    """
    if not isinstance(vendor_type, str):
        raise Refused(f'write the type first, as in start("REPLICATION", jobs=...), and got {shown(vendor_type)}')
    if close_after is not None and not open:
        raise Refused("close_after is the time limit of an open execution: write open=True as well")
    if parent is not None and (not isinstance(parent, Execution) or parent.pk is None):
        raise Refused(f"parent takes an execution that is in the database, and got {shown(parent)}")
    if parent is not None and strategy().runs_cycles:
        raise Refused("parent takes REFRESH_STRATEGY=claim: the older designs carry no status up to a parent")
    limit = CLOSE_AFTER if close_after is None else close_after
    callbacks = {
        "on_success": on_success,
        "on_error": on_error,
        "on_complete": on_complete,
        "on_first_error": on_first_error,
    }
    parts, turns = parts_of(() if jobs is None and open else jobs), turns_of(weight, fair_by)
    tells = bool(on_first_error)
    terms = terms_of("" if parent else once, on_failure, deadline, tells_first_failure=tells, tenant=fair_by or "")
    new = NewExecution(
        vendor_type,
        vendor_id=vendor_id,
        trigger=trigger,
        extra_attrs={} if extra_attrs is None else extra_attrs,
        open_seconds=limit if open else None,
        callbacks=callbacks_of(callbacks),
        parent=None if parent is None else parent.pk,
        key_in_parent=once if parent else "",
    )
    with missing_translated():
        execution, is_new = job_rows.start_or_find(new, parts, turns, terms)
    started = TrackedExecution.objects.get(pk=execution.pk)
    started.is_new = is_new
    return started


astart = asynchronous(start)
