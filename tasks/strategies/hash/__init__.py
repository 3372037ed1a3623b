"""`hash`: each instance refreshes the executions whose id, modulo the number of instances, is its own
number."""

from collections.abc import Iterator, Sequence

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.strategies import plain_set, worker_mutex
from harbor_refresh.tasks.strategies.cycles import refresh_each, run_and_signal
from harbor_refresh.tasks.strategies.hash import announcer
from harbor_refresh.tasks.strategies.hash.instance import this_instance
from harbor_refresh.tasks.strategies.strategy import Cycles


class Hash(Cycles):
    name = "hash"

    def connect(self) -> None:
        worker_mutex.connect()
        announcer.connect()

    def mark(self, members: Sequence[str]) -> bool:
        """Mark these members. A process that only marks needs no instance number."""
        plain_set.add(members)
        return False

    def cycle(self) -> Refreshed:
        return run_and_signal(self, self._run)

    def _run(self, outcome: Refreshed) -> None:
        refresh_each(self.own_members(), outcome, done=lambda member: plain_set.remove([member]))

    def own_members(self) -> Iterator[str]:
        """Read the members of this instance. Every instance reads the whole set."""
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
