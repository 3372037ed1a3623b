"""`lock`: like `scan`, but one instance at a time works a cycle, and the other instances wait."""

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.strategies import outdated_keys
from harbor_refresh.tasks.strategies.cycles import refresh_each
from harbor_refresh.tasks.strategies.lock.cycle_lock import cycle_lock
from harbor_refresh.tasks.strategies.scan import Scan


class Lock(Scan):
    name = "lock"

    def _run(self, outcome: Refreshed) -> None:
        """Work the cycle under the lock. If the lock is lost, end before the next execution, because the new
        holder refreshes the rest."""
        with cycle_lock() as held:
            if held is None:
                return
            refresh_each(self.find_marked(), outcome, done=outdated_keys.remove, may_continue=lambda: held.is_ours)
            if not held.is_ours:
                signals.lock_lost.send(sender=Lock)
