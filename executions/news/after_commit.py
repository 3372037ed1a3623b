"""News: the signals that this app sends after a commit.

    executions_touched  the tasks of these executions changed, or their status may be out of date for another
                        reason: `members`, pairs of id and vendor type. The status is not refreshed yet
    changes_written     status changes or deliveries wait to be delivered

If a listener is missing, reconcile and recovery find the rest. A deletion is not told.
"""

from collections.abc import Iterable
from functools import partial

from django.db import transaction
from django.dispatch import Signal

executions_touched = Signal()
changes_written = Signal()

#: The id of an execution and its vendor type.
Member = tuple[int, str]


def tell_touched(members: Iterable[Member]) -> None:
    """Tell that these executions may be out of date: `tasks.pipeline.marks` listens and puts them on the queue."""
    if told := list(members):
        executions_touched.send(sender=None, members=told)


def tell_touched_after_commit(members: Iterable[Member]) -> None:
    transaction.on_commit(partial(tell_touched, list(members)))


def tell_changes_written_after_commit() -> None:
    """Tell that something waits to be delivered: `tasks.operations` listens and sends `tasks.deliver`."""
    transaction.on_commit(_tell_changes_written)


def _tell_changes_written() -> None:  # of this module, because eager mode does what waits of ours (agenda.py)
    changes_written.send(sender=None)
