"""`lock`: as `scan`, but one instance at a time works a cycle and the others wait for it."""

from executions.rollup import Refreshed
from tasks import signals
from tasks.strategies import outdated_keys
from tasks.strategies.cycles import one_after_the_other
from tasks.strategies.lock.hold import cycle_lock
from tasks.strategies.scan import Scan


class Lock(Scan):
    name = "lock"

    def _run(self, outcome: Refreshed) -> None:
        """Under the lock. One that is lost in the middle ends the cycle at the next execution: whoever has
        it now does the rest."""
        with cycle_lock() as hold:
            if hold is None:
                return
            one_after_the_other(self.found(), outcome, done=outdated_keys.remove, go_on=lambda: hold.is_ours)
            if not hold.is_ours:
                signals.lock_lost.send(sender=Lock)
