"""Create executions with their tasks, and add tasks."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import run, sized_pages
from harbor_refresh.executions.errors import AlreadyFinal, ExecutionClosed, NoSuchExecution, Refused
from harbor_refresh.executions.lifecycle import gates, links, vendor_keys
from harbor_refresh.executions.models import Addition, Callback, Execution, Task, VendorKey
from harbor_refresh.executions.models.structure import Added
from harbor_refresh.executions.news import callbacks
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.executions.queries.filters import MAX_TRIGGER
from harbor_refresh.executions.status import MAX_VENDOR, is_final
from harbor_refresh.executions.text import MAX_JSON, is_number, is_text, json_text, shown

#: Rows, and characters of JSON, in one statement: the database's driver holds some five copies of it.
BATCH, BATCH_SIZE = 5_000, 4_000_000
MAX_JOB_ID = Task._meta.get_field("job_id").max_length or 0
MAX_KEY = Addition._meta.get_field("key").max_length or 0
#: An execution is open for a year at most.
MAX_OPEN_SECONDS = 366 * 24 * 3600


@dataclass(frozen=True)
class NewTask:
    """`revision` is that of its first run, which waits."""

    job_id: str = ""
    extra_attrs: dict[str, Any] = field(default_factory=dict)
    revision: int = 0


@dataclass(frozen=True)
class NewExecution:
    """`vendor_id`: the object that it is for (vendor_keys.py). `parent`: the id of an execution that has not
    ended, of which this one is a child (links.py). `open_seconds`: it is open for more tasks until it is closed,
    for so long at most (gates.py). None: it ends with its tasks. `is_action`: it may have the type BULK."""

    vendor_type: str
    vendor_id: vendor_keys.Given = 0
    trigger: str = "MANUAL"
    extra_attrs: dict[str, Any] = field(default_factory=dict)
    tasks: Sequence[NewTask] = ()
    open_seconds: float | None = None
    callbacks: Sequence[Callback] = ()
    parent: int | None = None
    key_in_parent: str = ""
    is_action: bool = False


def create(new: NewExecution) -> Execution:
    """Create an execution with its tasks, or nothing. It begins as Running, its tasks as Pending.

    Raises Refused, and writes nothing, if it holds a value that the database or the queue cannot store. Its tasks
    are at `execution.tasks`, in the order given. The gate of an open execution comes before them, so that
    transactions that lock tasks in id order lock it first.
    """
    refuse_if_attached(Operation.CREATE)
    new = replace(new, tasks=list(new.tasks))
    key = vendor_keys.key_of(new.vendor_id)
    _refuse_unstorable(new)
    with transaction.atomic():
        execution = Execution.objects.create(
            vendor_type=new.vendor_type,
            vendor_id=vendor_keys.number_of(key),
            trigger=new.trigger,
            extra_attrs=new.extra_attrs,
        )
        if isinstance(key, str):
            VendorKey.objects.create(execution=execution, key=key)
        if new.parent is not None and (parent := hold_open(new.parent)):  # without a key: held, or refused
            links.make(parent, execution, new.key_in_parent)
        if new.callbacks:
            callbacks.record(execution.pk, new.callbacks)
        if new.open_seconds is not None:
            gates.make(execution, new.open_seconds)
        _write_tasks(execution, new.tasks)
    return execution


def add_tasks(execution_id: int, tasks: Iterable[NewTask], *, once: str = "") -> list[int]:
    """Add tasks, as Pending, to an execution that has not ended; return their ids in the order given. `once`: the
    key of this addition. If it was made before, nothing is added, and the list is empty."""
    with transaction.atomic():
        execution = hold_open(execution_id, once=once)
        return add_to_held(execution, tasks) if execution else []


def hold_open(execution_id: int, *, once: str = "", adds: Added = Added.TASKS) -> Execution | None:
    """Keep the execution from ending until the caller's transaction ends, which adds tasks or a child. None if an
    addition of this kind and key was made before, also if the execution has ended since.

    1. Hold the execution, so that it is not deleted. One without a gate is locked against a refresh as well, which
       comes before this and ends it, or comes after this transaction and sees the new tasks.
    2. Note the key. Of two additions with one key at the same moment, the second waits for the first.
    3. Hold the gate. It ends before this, which raises ExecutionClosed, or after this transaction.
    4. An execution without a gate that has ended raises AlreadyFinal.
    """
    refuse_if_attached(Operation.CREATE)
    if not is_text(once, MAX_KEY):
        raise Refused(f"once takes text of at most {MAX_KEY} characters, and got {shown(once)}")
    rows = run("locks/hold_execution", execution_id=execution_id)
    if not rows:
        raise NoSuchExecution(execution_id)
    [(vendor_type, status, has_gate)] = rows
    _refuse_reserved(vendor_type)
    if once and not Addition.objects.get_or_create(execution_id=execution_id, kind=adds, key=once)[1]:
        return None
    if has_gate:
        if not run("locks/hold_gate", execution_id=execution_id)[0][0]:
            raise ExecutionClosed(f"execution {execution_id} is closed: start another one")
    elif is_final(status):
        raise AlreadyFinal(f"execution {execution_id} is {status} already: create another one")
    return Execution(pk=execution_id, vendor_type=vendor_type)


def add_to_held(execution: Execution, tasks: Iterable[NewTask]) -> list[int]:
    """Add tasks to an execution that the caller's transaction holds open; return their ids in the order given."""
    tasks = list(tasks)
    for task in tasks:
        _refuse_unstorable_task(task)
    return _write_tasks(execution, tasks)


def replace_attributes(of: type[Execution] | type[Task], pk: int, attributes: dict[str, Any]) -> bool:
    """Replace the extra_attrs of an execution or of a task, whatever its status; False if there is none."""
    refuse_if_attached(Operation.CREATE)
    _refuse_attributes("", attributes)
    rows = of._default_manager.filter(pk=pk)
    for vendor_type in rows.values_list("vendor_type", flat=True):
        _refuse_reserved(vendor_type)
    return rows.update(extra_attrs=attributes) == 1


def _write_tasks(execution: Execution, tasks: Sequence[NewTask]) -> list[int]:
    """Write tasks; return their ids in the order given."""
    of_execution = {"execution_id": execution.pk, "vendor_type": execution.vendor_type}
    pages = json_pages(of_execution | vars(task) for task in tasks)
    return [pk for page in pages for (pk,) in run("create_tasks", tasks=page)]


def json_pages(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Write the rows as JSON, a list for each statement."""
    texts = ((text, len(text)) for text in map(json.dumps, rows))
    return (f"[{','.join(page)}]" for page in sized_pages(texts, BATCH_SIZE, count=BATCH))


def _refuse_reserved(vendor_type: str) -> None:
    """Actions count against a limit, and their attributes say who may resume them (tasks/operations/bulk.py)."""
    if vendor_type == BULK:
        raise Refused(f"vendor type {BULK} is reserved for actions on many executions")


def _refuse_unstorable(new: NewExecution) -> None:
    if not is_text(new.vendor_type, MAX_VENDOR, at_least=1) or ":" in new.vendor_type:
        takes = f"takes 1 to {MAX_VENDOR} characters, none of them a colon"
        raise Refused(f"vendor type {shown(new.vendor_type)}: {takes}")
    if not new.is_action:
        _refuse_reserved(new.vendor_type)
    if not is_text(new.trigger, MAX_TRIGGER):
        raise Refused(f"trigger takes at most {MAX_TRIGGER} characters, and got {shown(new.trigger)}")
    _refuse_attributes("", new.extra_attrs)
    seconds: Any = new.open_seconds
    if seconds is not None and not (is_number(seconds, 0, MAX_OPEN_SECONDS) and seconds):
        takes = f"takes seconds above 0, at most {MAX_OPEN_SECONDS:,} (a year)"
        raise Refused(f"the time limit of an open execution {takes}, and got {shown(seconds)}")
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
