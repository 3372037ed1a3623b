"""Create executions with their tasks, any number in one call."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from executions.errors import AlreadyFinal, NoSuchExecution, Refused
from executions.models import Execution, Task
from executions.ownership import Deed, harbors
from executions.status import MAX_ID, MAX_VENDOR, is_final
from executions.text import MAX_JSON, is_text, is_whole, json_text, shown

BATCH = 5_000
MAX_TRIGGER = Execution._meta.get_field("trigger").max_length or 0
MAX_JOB_ID = Task._meta.get_field("job_id").max_length or 0


@dataclass(frozen=True)
class NewTask:
    """`revision` is that of its first run, which waits."""

    job_id: str = ""
    extra_attrs: dict[str, Any] = field(default_factory=dict)
    revision: int = 0


@dataclass(frozen=True)
class NewExecution:
    vendor_type: str
    vendor_id: int = 0
    trigger: str = "MANUAL"
    extra_attrs: dict[str, Any] = field(default_factory=dict)
    tasks: Sequence[NewTask] = ()


def create(new: NewExecution) -> Execution:
    """Create one execution and its tasks."""
    return create_many([new])[0]


@harbors(Deed.CREATE)
def create_many(news: Iterable[NewExecution]) -> list[Execution]:
    """Create all of them in one transaction, or none. An execution begins as Running, its tasks as Pending.

    Raises Refused, and writes nothing, if one of them holds a value that the database or the queue cannot store.
    The tasks of each execution are at `execution.tasks`, in the order given.
    """
    news = [replace(new, tasks=list(new.tasks)) for new in news]
    for new in news:
        _refuse_unstorable(new)
    with transaction.atomic():
        executions = Execution.objects.bulk_create(
            (
                Execution(
                    vendor_type=new.vendor_type,
                    vendor_id=new.vendor_id,
                    trigger=new.trigger,
                    extra_attrs=new.extra_attrs,
                )
                for new in news
            ),
            batch_size=BATCH,
        )
        _create_tasks(
            (execution, task) for new, execution in zip(news, executions, strict=True) for task in new.tasks
        )
    return executions


@harbors(Deed.CREATE)
def add_tasks(execution_id: int, tasks: Iterable[NewTask]) -> list[Task]:
    """Add tasks, as Pending, to an execution that has not ended; return them in the order given.

    The execution's row is locked, so that a refresh comes before this and ends the execution, which raises
    AlreadyFinal here, or comes after this and sees the new tasks.
    """
    tasks = list(tasks)
    for task in tasks:
        _refuse_unstorable_task(task)
    with transaction.atomic():
        execution = Execution.objects.select_for_update(no_key=True).filter(pk=execution_id).first()
        if execution is None:
            raise NoSuchExecution(execution_id)
        if is_final(execution.status):
            raise AlreadyFinal(f"execution {execution_id} is {execution.status} already: create another one")
        return _create_tasks((execution, task) for task in tasks)


def _create_tasks(of_executions: Iterable[tuple[Execution, NewTask]]) -> list[Task]:
    return Task.objects.bulk_create(
        (
            Task(
                execution=execution,
                vendor_type=execution.vendor_type,
                job_id=task.job_id,
                extra_attrs=task.extra_attrs,
                status_revision=task.revision,
            )
            for execution, task in of_executions
        ),
        batch_size=BATCH,
    )


def _refuse_unstorable(new: NewExecution) -> None:
    if not is_text(new.vendor_type, MAX_VENDOR, at_least=1) or ":" in new.vendor_type:
        takes = f"takes 1 to {MAX_VENDOR} characters, none of them a colon"
        raise Refused(f"vendor type {shown(new.vendor_type)}: {takes}")
    if not is_whole(new.vendor_id, -MAX_ID - 1, MAX_ID):
        raise Refused(f"vendor_id takes a whole number of at most 64 bits, and got {shown(new.vendor_id)}")
    if not is_text(new.trigger, MAX_TRIGGER):
        raise Refused(f"trigger takes at most {MAX_TRIGGER} characters, and got {shown(new.trigger)}")
    _refuse_attributes("", new.extra_attrs)
    for task in new.tasks:
        _refuse_unstorable_task(task)


def _refuse_unstorable_task(task: NewTask) -> None:
    if not is_text(task.job_id, MAX_JOB_ID):
        raise Refused(f"task: job_id takes at most {MAX_JOB_ID} characters, and got {shown(task.job_id)}")
    if task.extra_attrs != {}:
        _refuse_attributes(f"task {task.job_id}: ", task.extra_attrs)


def _refuse_attributes(owner: str, attributes: Any) -> None:
    takes = f"{owner}extra_attrs takes a dict that is JSON of at most {MAX_JSON:,} bytes"
    if not isinstance(attributes, dict):
        raise Refused(f"{takes}, and got {shown(attributes)}")
    try:
        json_text(attributes)
    except (TypeError, ValueError) as exc:
        raise Refused(f"{takes}: {exc}") from exc
