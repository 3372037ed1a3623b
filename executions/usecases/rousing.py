"""Rouse: ask for a tick if anything waits and none is on its way."""

from executions import signals
from executions.queue import execution_queue
from executions.strategies import strategy


def rouse(*, anyway: bool = False) -> bool:
    """True if a tick was asked for; `anyway`: though one seems to be on its way, for it may have been lost.

    The older designs wait for their schedule; to rouse them is not theirs."""
    asked = not strategy().everywhere and execution_queue().wake(anyway=anyway)
    if asked:
        signals.woken.send(sender=rouse)
    return asked
