"""Check-ins: what a running job has to say, passed to the function that its vendor type has registered.

    @on_check_in("RETENTION")
    def note_progress(check_in: CheckIn) -> None: ...

A function is called at least once for each check-in: a sender that got no answer tries again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from harbor_refresh.executions.hook.job_reports import NO_TASK, missing
from harbor_refresh.executions.hook.status_change import StatusChange
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.news import signals


@dataclass(frozen=True)
class CheckIn:
    """A check-in of a job of Harbor's job service.

    Attributes:
        task_id: The id of its task.
        execution_id: The id of its execution.
        vendor_type: The vendor type of its execution.
        job_id: The id of the job.
        text: What the job says.
        at: The time in Unix seconds, by the clock of the sender.
        revision: The revision of the run.
    """

    task_id: int
    execution_id: int
    vendor_type: str
    job_id: str
    text: str
    at: int
    revision: int


Processor = Callable[[CheckIn], object]
_processors: dict[str, Processor] = {}


def on_check_in(vendor_type: str) -> Callable[[Processor], Processor]:
    """Register the function that gets the check-ins of a vendor type. Each vendor type has one function."""

    def register(function: Processor) -> Processor:
        known = _processors.setdefault(vendor_type, function)
        if known is not function:
            raise ValueError(f"check-ins of {vendor_type} go to {known!r} already")
        return function

    return register


def pass_on(change: StatusChange, task_id: int = NO_TASK) -> None:
    """Pass the check-in on; no status changes. Raises NoTaskYet or TaskDeleted, and what the function raises. One
    of a vendor type without a function is dropped with a signal: the sender is not at fault."""
    task = _task_of(change, task_id)
    vendor_type = task.execution.vendor_type
    processor = _processors.get(vendor_type)
    if processor is None:
        signals.check_in_dropped.send(sender=pass_on, vendor_type=vendor_type, task_id=task.pk)
        return
    processor(
        CheckIn(
            task.pk,
            task.execution_id,
            vendor_type,
            change.job_id,
            change.check_in,
            change.check_in_at,
            change.revision,
        )
    )


def _task_of(change: StatusChange, task_id: int) -> Task:
    """Find the task by the upstream job, as Harbor does; else by the job, or by the address."""
    tasks = Task.objects.select_related("execution").order_by("pk")
    for job_id in (change.upstream_id, change.job_id):
        if job_id and (task := tasks.filter(job_id=job_id).first()):
            return task
    of_address = tasks.filter(pk=task_id)
    if task := (of_address.filter(job_id="") if change.job_id else of_address).first():
        return task
    raise missing(change, task_id)
