"""start: an execution of jobs, from their signatures."""

from typing import TYPE_CHECKING, Any

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.text import shown
from harbor_refresh.tasks.jobs.end_callbacks import callbacks_of
from harbor_refresh.tasks.jobs.execution import TrackedExecution, asynchronous
from harbor_refresh.tasks.jobs.starting import records as creation
from harbor_refresh.tasks.jobs.starting.canvas import Given, parts_of
from harbor_refresh.tasks.jobs.starting.fairness import turns_of
from harbor_refresh.tasks.jobs.terms import NewTerms
from harbor_refresh.tasks.strategies import strategy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from celery.canvas import Signature

    Callbacks = Signature[Any] | Sequence[Signature[Any]] | None

#: An open execution that is not closed ends after a day, if `close_after` says nothing else.
CLOSE_AFTER = 24 * 3600.0


def start(
    vendor_type: str,
    *,
    jobs: "Given" = None,
    vendor_id: "int | str | UUID" = 0,
    trigger: str = "MANUAL",
    extra_attrs: dict[str, Any] | None = None,
    open: bool = False,
    close_after: float | None = None,
    parent: Execution | None = None,
    once: str = "",
    weight: float = 1,
    fair_by: str | None = None,
    deadline: "float | datetime | str | None" = None,
    on_failure: str = "continue",
    on_first_error: "Callbacks" = None,
    on_success: "Callbacks" = None,
    on_error: "Callbacks" = None,
    on_complete: "Callbacks" = None,
) -> TrackedExecution:
    """Start an execution of these jobs: signatures, chains, groups and chords of them, and jobs that need others
    (`job`); or one of these by itself.

    Jobs and execution are recorded in one transaction, and published after its commit. If a part of them cannot be
    stored, sent or run, it raises Refused and writes nothing.

    `vendor_id`: the object that it is for, by its key: a number, a UUID or text. Others find it by that.

    `parent`: an execution that has not ended, such as `job.execution`. This one counts as one task of it. None: it
    has no parent. `once`: any text that names this execution among those of its vendor type, or this child within
    its parent. If there is one already, it is returned, its `is_new` is False, and nothing is started.

    `deadline`: seconds from now, or a moment. What has not ended by then is stopped.

    `on_failure="stop"`: when a job has failed, the rest is stopped. Otherwise the rest continues.

    `weight`: it has so many turns where another execution has one. `fair_by`: any text that names a tenant; the
    executions of a tenant share the turns of one.

    `on_success`, `on_error` and `on_complete` (Success, Error, any end): plain Celery tasks that are called at
    least once when it has ended so (end_callbacks.py). `on_first_error`: the same, when its first job has failed.

    `open`: it does not end before it is closed, and jobs are added to it meanwhile (`add`, `close`). If it is not
    closed within `close_after` seconds, a day if that is not given, it is closed for its producer, and ends as
    Error.
    """
    if not isinstance(vendor_type, str):
        raise Refused(f'write the type first, as in start("REPLICATION", jobs=[...]); got {shown(vendor_type)}')
    if close_after is not None and not open:
        raise Refused("close_after is the time limit of an open execution: write open=True as well")
    if parent is not None and (not isinstance(parent, Execution) or parent.pk is None):
        raise Refused(f"parent takes an execution that is in the database, and got {shown(parent)}")
    if parent is not None and strategy().runs_cycles:
        raise Refused("parent takes REFRESH_STRATEGY=claim: the older designs carry no status up to a parent")
    limit = CLOSE_AFTER if close_after is None else close_after
    callbacks = callbacks_of(
        {
            "on_success": on_success,
            "on_error": on_error,
            "on_complete": on_complete,
            "on_first_error": on_first_error,
        }
    )
    of_it = NewTerms(
        once="" if parent else once,
        deadline=deadline,
        on_failure=on_failure,
        tells_first_failure=any(not one.statuses for one in callbacks),
    )
    execution, is_new = creation.start_or_find(
        vendor_type,
        parts_of(() if jobs is None and open else jobs),
        turns_of(weight, fair_by),
        vendor_id=vendor_id,
        trigger=trigger,
        extra_attrs={} if extra_attrs is None else extra_attrs,
        open_seconds=limit if open else None,
        callbacks=callbacks,
        parent=None if parent is None else parent.pk,
        key_in_parent=once if parent else "",
        of_it=of_it,
    )
    started = TrackedExecution.objects.get(pk=execution.pk)
    started.is_new = is_new
    return started


astart = asynchronous(start)
