"""Create executions with their tasks, any number in one call."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.db import transaction

from executions.errors import Refused
from executions.models import Execution, Task
from executions.status import MAX_VENDOR
from executions.text import storable

BATCH = 5_000


@dataclass(frozen=True)
class NewTask:
    job_id: str = ""
    extra_attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewExecution:
    vendor_type: str
    vendor_id: int = 0
    trigger: str = "MANUAL"
    extra_attrs: dict[str, Any] = field(default_factory=dict)
    tasks: Sequence[NewTask] = ()


def create(new: NewExecution) -> Execution:
    """One execution and its tasks; the bulk of one."""
    return create_many([new])[0]


def create_many(news: Iterable[NewExecution]) -> list[Execution]:
    """All of them in one transaction, or none. Each begins as Running, its tasks as Pending.

    The tasks of each are at `execution.tasks`, in the order given.
    """
    news = list(news)
    for new in news:
        _refuse_unreadable_vendor(new.vendor_type)
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
        Task.objects.bulk_create(
            chain.from_iterable(
                (
                    Task(
                        execution=execution,
                        vendor_type=new.vendor_type,
                        job_id=task.job_id,
                        extra_attrs=task.extra_attrs,
                    )
                    for task in new.tasks
                )
                for new, execution in zip(news, executions, strict=True)
            ),
            batch_size=BATCH,
        )
    return executions


def _refuse_unreadable_vendor(vendor: str) -> None:
    if not vendor or len(vendor) > MAX_VENDOR or ":" in vendor or not storable(vendor):
        raise Refused(f"vendor type {vendor[:80]!r}: takes 1 to {MAX_VENDOR} characters, none of them a colon")
