"""Handlers: functions in Python that are called when the status of an execution changes.

    from harbor_refresh import Change, on_execution

    @on_execution("REPLICATION", status="Error")
    def alert(change: Change) -> None: ...

A handler is called by a Celery worker, after the commit, at least once for each change, and in order for each
execution. If it raises or takes too long, it is called again later; after three days or 30 attempts its delivery
is a dead letter, which is logged. Import the modules with handlers when Django starts (AppConfig.ready), in every
worker.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.status import FINAL, Status, is_final


@dataclass(frozen=True)
class Failure:
    """A task that ended as Error. A long message is shortened."""

    task_id: int
    job_id: str
    message: str


@dataclass(frozen=True)
class Change:
    """One change of the status of an execution.

    The attributes up to `at` describe the change. The other attributes are read at the delivery, and are empty if
    the execution was deleted by then.

    Attributes:
        id: An id of the change. It is the same if the change is delivered again.
        execution_id: The id of the execution.
        vendor_type: Its vendor type.
        revision: Its revision, which grows by one with each change.
        from_status: The status before.
        to_status: The status after.
        at: The time of the change.
        vendor_id: The object that the execution is for, as a number.
        vendor_key: The same object as the text, UUID or number that was given.
        trigger: What started the execution.
        status_message: Its status message.
        extra_attrs: Its attributes; None if they are too long.
        start_time: When it started.
        update_time: When it was last refreshed.
        end_time: When it ended; None if it has not ended.
        counts: The number of its tasks by status.
        first_failures: The first tasks that ended as Error.
        is_deleted: Whether it was deleted before this delivery.
    """

    id: str
    execution_id: int
    vendor_type: str
    revision: int
    from_status: str
    to_status: str
    at: datetime
    vendor_id: int | None = None
    vendor_key: str = ""
    trigger: str = ""
    status_message: str = ""
    extra_attrs: Mapping[str, Any] | None = None
    start_time: datetime | None = None
    update_time: datetime | None = None
    end_time: datetime | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    first_failures: tuple[Failure, ...] = ()
    is_deleted: bool = False

    @property
    def duration_seconds(self) -> float | None:
        """The seconds from start to end; None while the execution has not ended."""
        if self.start_time is None or self.end_time is None or not is_final(self.to_status):
            return None
        return max(0.0, round((self.end_time - self.start_time).total_seconds(), 3))


Function = TypeVar("Function", bound=Callable[[Change], Any])


@dataclass(frozen=True)
class Registered:
    """A function and its filters. An empty filter matches all."""

    function: Callable[[Change], Any]
    vendors: tuple[str, ...]
    statuses: tuple[str, ...]
    triggers: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"


#: By name, in the order of the registration.
_registered: dict[str, Registered] = {}


def on_execution(
    *vendors: str, status: str | Iterable[str] | None = None, trigger: str | Iterable[str] = ()
) -> Callable[[Function], Function]:
    """Register a function that is called with each `Change`.

    Args:
        vendors: The vendor types; none: all.
        status: One new status or several. An empty list: every status. Default: the final statuses.
        trigger: One trigger or several; none: all.
    """
    if any(callable(one) for one in vendors):
        raise Refused("write @on_execution(), with parentheses")
    statuses = _texts(FINAL if status is None else status)
    if unknown := set(statuses) - set(Status.values):
        raise Refused(f"unknown status {', '.join(sorted(unknown))}; takes {', '.join(Status.values)}")

    def register(function: Function) -> Function:
        one = Registered(function, tuple(vendors), statuses, _texts(trigger))
        if iscoroutinefunction(function):
            raise Refused(f"nothing would await {one.name}: write a plain function, which may call asyncio.run()")
        if _registered.setdefault(one.name, one) != one:
            raise Refused(f"{one.name} is registered twice: write one @on_execution, with all of its vendors")
        return function

    return register


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str) else tuple(map(str, given))


def handlers() -> dict[str, Registered]:
    """Return all handlers by name."""
    return _registered
