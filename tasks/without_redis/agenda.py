"""The agenda: what a thread does at once, where messages would have other processes do it.

    runs     jobs, in eager mode, in the order in which they would have been published
    changed  executions whose status may be out of date
    written  whether changes of status are to be told to callbacks and handlers

An operation, such as `start`, works its agenda off before it returns. What a job or a callback starts meanwhile is
done after it, so that no number of jobs that start jobs is too deep for Python. Runs come first, then one refresh
for all of them, then callbacks.

In eager mode the transaction of a caller may stay open, and the tests of Django never commit theirs. Those of our
calls that wait for the commit are then done within it, and a rollback undoes them. If the process dies, nothing
repeats what it has not done.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from celery import current_app
from django.db import connection, transaction

from harbor_refresh.executions.lifecycle.rollup import refresh_at_once
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.news.deliveries.deliverer import (
    due_handlers,
    keep_rows,
    run_handler,
    write_deliveries,
)
from harbor_refresh.executions.news.handlers import handlers
from harbor_refresh.tasks.without_redis import mode

#: The modules whose calls after the commit are done before it, if it is not to come.
OURS = ("harbor_refresh.executions.", "harbor_refresh.tasks.jobs.")

#: What is looked for after each change of a task, before the next job runs. Each says whether it found something.
consequences: list[Callable[[], object]] = []

#: Of a connection whose transaction PostgreSQL has given up, by libpq's number.
IN_ERROR = 3

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Agenda(threading.local):
    def __init__(self) -> None:
        self.runs: deque[Callable[[], None]] = deque()
        self.changed: set[int] = set()
        self.written = False
        #: The first job or callback that failed for good.
        self.failure: BaseException | None = None
        #: The operations that this thread is in, and loops over the agenda: they do what comes in the meantime.
        self.nested = 0

    def work_off(self) -> None:
        """Do what is on the agenda, until nothing is left."""
        self.nested += 1
        try:
            while self._do_next():
                pass
        except BaseException:
            self.runs.clear()  # the next operation is not to begin with the jobs of this one
            raise
        finally:
            self.nested -= 1

    def _do_next(self) -> bool:
        if mode.is_eager() and connection.in_atomic_block:
            _do_what_waits_for_a_commit()
        if self.changed and any(one() for one in consequences):
            pass  # what they have changed is on the agenda now
        elif self.runs:
            self.runs.popleft()()
        elif self.changed:
            changed, self.changed = sorted(self.changed), set()
            refresh_at_once(changed)
        elif self.written:
            self.written = False
            _call_handlers()
        else:
            return False
        return True

    def work_off_unless_later(self) -> None:
        if not self.nested:
            self.work_off()


_agenda = Agenda()


def at_once(operation: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Have this operation, and all that follows from it, done when it returns, if this process has no Redis. With
    Celery's `task_eager_propagates`, the first error of a job or a callback is raised at the end."""

    @wraps(operation)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not mode.is_on():
            return operation(*args, **kwargs)
        is_outermost = not _agenda.nested
        if is_outermost:
            _agenda.failure = None
            if handlers():
                keep_rows()
        _agenda.nested += 1
        try:
            result = operation(*args, **kwargs)
        finally:
            _agenda.nested -= 1
        if is_outermost:
            _agenda.work_off()
            failure, _agenda.failure = _agenda.failure, None
            if failure is not None and current_app.conf.task_eager_propagates:
                raise failure
        return result

    return call


def add_run(run: Callable[[], None]) -> None:
    _agenda.runs.append(run)


def add_changed(execution_ids: Iterable[int]) -> None:
    _agenda.changed.update(execution_ids)
    _agenda.work_off_unless_later()


def add_written() -> None:
    _agenda.written = True
    _agenda.work_off_unless_later()


def add_failure(failure: BaseException) -> None:
    if mode.is_eager() and _agenda.failure is None:
        _agenda.failure = failure


def work_off() -> None:
    """Do what is left now, also in the middle of a job: it waits for that."""
    _agenda.work_off()


def _do_what_waits_for_a_commit() -> None:
    waiting: list[Any] = connection.run_on_commit
    connection.run_on_commit = [one for one in waiting if not _is_ours(one[1])]
    for _, call, *_ in waiting:
        if _is_ours(call):
            call()


def _is_ours(call: Any) -> bool:
    function = call.func if isinstance(call, partial) else call
    return str(getattr(function, "__module__", "")).startswith(OURS)


def _call_handlers() -> None:
    """Call callbacks and handlers for what has changed. One that raises is logged, and is called again at the next
    change of an execution."""
    write_deliveries()
    signals.handler_failed.connect(_on_handler_failed, dispatch_uid=__name__)
    try:
        while due := due_handlers():
            for subscription_id in due:
                while run_handler(subscription_id, with_savepoint):
                    pass
    finally:
        signals.handler_failed.disconnect(dispatch_uid=__name__)


def _on_handler_failed(**_: Any) -> None:
    if failure := sys.exception():
        add_failure(failure)


@contextmanager
def with_savepoint() -> Iterator[None]:
    """In the transaction of a caller, keep what the code writes, as a worker would, until PostgreSQL refuses a
    statement: then take it all back, because the transaction could do nothing more."""
    if not connection.in_atomic_block:
        yield
        return
    savepoint = transaction.savepoint()
    try:
        yield
    finally:
        # atomic() leaves a mark if it could not roll back to a savepoint of its own
        if connection.needs_rollback or connection.connection.info.transaction_status == IN_ERROR:
            connection.needs_rollback = False
            transaction.savepoint_rollback(savepoint)
        else:
            transaction.savepoint_commit(savepoint)
