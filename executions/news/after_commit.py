"""News: the signals that this app sends after a commit.

    executions_touched  the tasks of these executions changed, or their status may be out of date for another
                        reason: `members`, pairs of id and vendor type. The status is not refreshed yet
    executions_deleted  these executions are gone: `execution_ids`; `job_ids` of their tasks that had not ended
    changes_written     status changes or deliveries wait for the deliverer

They tell of past events, and a listener may be missing: then reconcile finds the executions whose status differs,
recovery finds the jobs that run for a deleted execution, and the schedule starts the deliverer.

    execution_changed   the status of an execution changed: `change`, an
    harbor_refresh.executions.news.handlers.Change

This one is sent by the deliverer for each row of the history, at least once, and in order for each execution. A
receiver that raises gets it again, and so do the receivers before it. Connect receivers before workers start.
"""

from collections.abc import Iterable
from functools import partial

from django.db import transaction
from django.dispatch import Signal

from harbor_refresh.executions.news.steps import carried

executions_touched = Signal()
executions_deleted = Signal()
changes_written = Signal()
execution_changed = Signal()

#: The id of an execution and its vendor type.
Member = tuple[int, str]


def tell_touched(members: Iterable[Member]) -> None:
    """Tell that these executions may be out of date: `tasks.pipeline.marks` listens and puts them on the queue."""
    if told := list(members):
        executions_touched.send(sender=None, members=told)


def tell_touched_after_commit(members: Iterable[Member]) -> None:
    transaction.on_commit(carried(partial(tell_touched, list(members))))


def tell_deleted_after_commit(execution_ids: Iterable[int], job_ids: Iterable[str]) -> None:
    """Tell of the deletion: nobody needs to: their jobs are gone with them."""
    transaction.on_commit(partial(_tell_deleted, list(execution_ids), list(job_ids)))


def tell_changes_written_after_commit() -> None:
    """Tell that something waits to be delivered: `tasks.operations` listens and starts a deliverer."""
    transaction.on_commit(_tell_changes_written)


def _tell_deleted(execution_ids: list[int], job_ids: list[str]) -> None:
    executions_deleted.send(sender=None, execution_ids=execution_ids, job_ids=job_ids)


def _tell_changes_written() -> None:
    changes_written.send(sender=None)
