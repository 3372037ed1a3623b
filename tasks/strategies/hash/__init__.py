"""`hash`: each instance takes the executions whose id, divided by how many there are, leaves its number."""

from collections.abc import Iterator, Sequence

from executions.rollup import Refreshed
from tasks import signals
from tasks.queue import members as names
from tasks.strategies import plain_set, worker_lock
from tasks.strategies.cycles import one_after_the_other, told
from tasks.strategies.hash import worker
from tasks.strategies.hash.instance import this_instance


class Hash:
    name = "hash"

    def connect(self) -> None:
        worker_lock.connect()
        worker.connect()

    def mark(self, members: Sequence[str]) -> None:
        """Whoever marks need not be an instance."""
        plain_set.add(members)

    def cycle(self) -> Refreshed:
        return told(self, self._run)

    def _run(self, outcome: Refreshed) -> None:
        one_after_the_other(self.mine(), outcome, done=lambda member: plain_set.remove([member]))

    def mine(self) -> Iterator[str]:
        """Our part of the set. Every instance reads the whole of it."""
        instance = this_instance()
        for page in plain_set.scan():
            members, unreadable = names.sorted_out(page)
            if unreadable:
                plain_set.remove(unreadable)
                signals.discarded.send(sender=Hash, members=unreadable)
            yield from (one for one in members if names.execution_id(one) % instance.total == instance.number)

    def lost(self, members: Sequence[str]) -> list[str]:
        return list(plain_set.missing(members))

    def backlog(self) -> int:
        return plain_set.size()
