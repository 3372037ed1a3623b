"""`upstream`, what Harbor merged: pop a hundred, refresh them, pop the next, until the set is empty."""

from collections.abc import Sequence

from executions.rollup import Refreshed
from tasks import signals
from tasks.queue import members as names
from tasks.strategies import plain_set, worker_lock
from tasks.strategies.cycles import one_after_the_other, told


class Upstream:
    name = "upstream"

    BATCH = 100

    def connect(self) -> None:
        worker_lock.connect()

    def mark(self, members: Sequence[str]) -> None:
        plain_set.add(members)

    def cycle(self) -> Refreshed:
        """What was popped is nowhere but here: if the process dies, up to a hundred are lost, and reconcile
        must find them. The original has nothing of the kind (harbor #21961).

        What failed goes back at the end of its batch. A batch that brings nothing but what has failed in this
        cycle ends it, and so does a database that is away: the original pops its own returns without a pause.
        """
        return told(self, self._run)

    def _run(self, outcome: Refreshed) -> None:
        while popped := plain_set.pop(self.BATCH):
            failed_before = set(outcome.failed)
            members, unreadable = names.sorted_out(popped)
            if unreadable:
                signals.discarded.send(sender=Upstream, members=unreadable)
            undone = dict.fromkeys(members)
            try:
                one_after_the_other(members, outcome, done=undone.pop)
            finally:
                plain_set.add(undone)
            if undone and failed_before.issuperset(names.ids(members)):
                return

    def lost(self, members: Sequence[str]) -> list[str]:
        """Not those that another instance has popped and is working on: nobody can know of them. So
        reconcile may mark what is being done."""
        return list(plain_set.missing(members))

    def backlog(self) -> int:
        return plain_set.size()
