"""Handlers: functions in Python that are called when the status of an execution changes.

    from harbor_refresh import Change, on_execution

    @on_execution("REPLICATION", status="Error")
    def alert(change: Change) -> None: ...

A handler is called by a Celery worker, after the commit, at least once for each change, and in order for each
execution. If it raises or takes too long, it is called again later; after three days or 30 attempts its delivery
is a dead letter, which is logged. Import the modules with handlers when Django starts (AppConfig.ready), in every
worker.

The signal `execution_changed` of executions/news/after_commit.py is one more handler, which is registered if it
has receivers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.news.after_commit import execution_changed
from harbor_refresh.executions.status import FINAL, Status, is_final


@dataclass(frozen=True)
class Failure:
    """A task that ended as Error."""

    task_id: int
    job_id: str
    #: Shortened if it is long.
    message: str


@dataclass(frozen=True)
class Change:
    """One change of status. The fields up to `at` describe the change itself. The others are read when the change
    is delivered; they are empty if the execution was deleted by then."""

    #: The same each time this change is delivered.
    id: str
    execution_id: int
    vendor_type: str
    #: The revision of the execution: it grows by one with each change.
    revision: int
    from_status: str
    to_status: str
    at: datetime
    vendor_id: int | None = None
    #: The vendor's object as text: the number `vendor_id`, or the text that was given.
    vendor_key: str = ""
    trigger: str = ""
    status_message: str = ""
    #: None if they are too long.
    extra_attrs: Mapping[str, Any] | None = None
    start_time: datetime | None = None
    update_time: datetime | None = None
    #: None while the execution has not ended.
    end_time: datetime | None = None
    #: The number of tasks by status.
    counts: Mapping[str, int] = field(default_factory=dict)
    #: The first tasks that ended as Error.
    first_failures: tuple[Failure, ...] = ()
    #: Whether the execution was deleted before this delivery.
    is_deleted: bool = False

    @property
    def duration_seconds(self) -> float | None:
        """From the start to the end; None while the execution has not ended."""
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


#: In the order of the registration. More than one of a name is an error, which executions/checks.py tells.
_registered: list[Registered] = []


def on_execution(
    *vendors: str, status: str | Iterable[str] | None = None, trigger: str | Iterable[str] = ()
) -> Callable[[Function], Function]:
    """Register a function for executions of these vendors, or of all. `status`: one, several, or an empty list for
    every status; the final ones if it is not given."""
    if any(callable(one) for one in vendors):
        raise Refused("write @on_execution(), with parentheses")
    statuses = _texts(FINAL if status is None else status)
    if unknown := set(statuses) - set(Status.values):
        raise Refused(f"unknown status {', '.join(sorted(unknown))}; takes {', '.join(Status.values)}")

    def register(function: Function) -> Function:
        one = Registered(function, tuple(vendors), statuses, _texts(trigger))
        if one not in _registered:
            _registered.append(one)
        return function

    return register


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str) else tuple(map(str, given))


def send_execution_changed(change: Change) -> None:
    """Send the signal. A receiver that raises gets the change again, so `send_robust` would not do."""
    execution_changed.send(sender=None, change=change)


def registrations() -> list[Registered]:
    """Return all handlers, that of the signal included if it has receivers."""
    of_the_signal = Registered(send_execution_changed, (), (), ())
    return [*_registered, *([of_the_signal] if execution_changed.receivers else [])]


def handlers() -> dict[str, Registered]:
    return {one.name: one for one in registrations()}
