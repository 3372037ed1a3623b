"""`upstream`, the design that Harbor merged: pop a hundred members and refresh them, until the set is empty."""

from collections.abc import Sequence

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.strategies import plain_set, worker_mutex
from harbor_refresh.tasks.strategies.cycles import refresh_each, run_and_signal
from harbor_refresh.tasks.strategies.strategy import Cycles


class Upstream(Cycles):
    name = "upstream"

    BATCH = 100

    def connect(self) -> None:
        worker_mutex.connect()

    def mark(self, members: Sequence[str]) -> bool:
        plain_set.add(members)
        return False

    def cycle(self) -> Refreshed:
        """Pop and refresh, batch by batch. Popped members are only in the memory of this process: if it dies,
        up to a hundred are lost, and reconcile must find them. The original has no reconcile (harbor #21961).

        Failed members are put back at the end of their batch. The cycle ends at a batch that holds only members
        that have failed in this cycle, or if the database is away. The original would pop its own returns
        without a pause.
        """
        return run_and_signal(self, self._run)

    def _run(self, outcome: Refreshed) -> None:
        while popped := plain_set.pop(self.BATCH):
            failed_before = set(outcome.failed)
            members, unreadable = names.sorted_out(popped)
            if unreadable:
                signals.discarded.send(sender=Upstream, members=unreadable)
            undone = dict.fromkeys(members)
            try:
                refresh_each(members, outcome, done=undone.pop)
            finally:
                plain_set.add(undone)
            if undone and failed_before.issuperset(names.ids(members)):
                return

    def lost(self, members: Sequence[str]) -> list[str]:
        """Return the members that are not in the set. Members that an instance has popped are in no key, so
        reconcile may mark executions that are being refreshed."""
        return list(plain_set.missing(members))

    def backlog(self) -> int:
        return plain_set.size()
