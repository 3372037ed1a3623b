"""Recover: give back what dead nodes had claimed."""

from executions import signals
from executions.queue import execution_queue
from executions.usecases.quarantining import quarantine
from executions.usecases.rousing import rouse


def recover() -> int:
    """Give back the claims of dead nodes and of a time long past; wake a tick if anything waits.

    Any number may do it at once: a token goes back once. Returns how many were recovered, those included
    that have now failed too often and were quarantined.
    """
    queue = execution_queue()
    given_back, unreadable = queue.recover_stale()
    if unreadable:
        signals.discarded.send(sender=recover, members=unreadable)
    quarantine(given_back.exhausted)
    count = given_back.returned + len(given_back.exhausted)
    if count:
        queue.forget_wake()  # a tick on its way may have died with its node
        signals.recovered.send(sender=recover, count=count)
    rouse()
    return count
