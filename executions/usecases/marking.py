"""Mark executions as possibly out of date, after the commit of what changed them.

A mark that cannot be sent is told and not raised: the change is committed, the caller's work is done, and
reconcile finds the execution in the database.
"""

from collections.abc import Iterable
from functools import partial

from django.db import transaction

from executions import signals
from executions.conf import refresh_settings
from executions.errors import QueueUnavailable
from executions.queue import members as names
from executions.strategies import strategy
from executions.usecases.refreshing import refresh_at_once


def mark(members: Iterable[str]) -> bool:
    """Put members (`ID:VENDOR`) where the strategy keeps its marks, now. False if Redis could not be reached.

    With an interval ≤ 0 there is no queue: they are refreshed here and at once.

    What if two do it at once: twice is once. What if the process dies before: reconcile. What if it
    dies between the mark and the wake-up: the next tick of the schedule.
    """
    members = list(members)
    if not members:
        return True
    if refresh_settings().in_process:
        refresh_at_once(names.ids(members))
        return True
    try:
        must_wake = strategy().mark(members)
    except QueueUnavailable as exc:
        signals.marks_lost.send(sender=mark, count=len(members), error=str(exc))
        return False
    if must_wake:
        signals.woken.send(sender=mark)
    return True


def mark_after_commit(members: Iterable[str]) -> None:
    transaction.on_commit(partial(mark, list(members)))
