"""`scan`, the original of Harbor: one key an execution, and every instance goes through all of them."""

import random
from collections.abc import Sequence

from executions.rollup import Refreshed
from tasks import signals
from tasks.strategies import outdated_keys, worker_lock
from tasks.strategies.cycles import one_after_the_other, told


class Scan:
    name = "scan"

    #: How many keys Redis looks at in one step of a cycle: its default, which is what the original uses. A
    #: million keys take 100,000 round trips.
    PAGE = 10
    #: The same for whoever only wants to know how many there are. That is no part of the original.
    COUNTING_PAGE = 1_000

    def connect(self) -> None:
        worker_lock.connect()

    def mark(self, members: Sequence[str]) -> None:
        outdated_keys.add(members)

    def cycle(self) -> Refreshed:
        return told(self, self._run)

    def _run(self, outcome: Refreshed) -> None:
        one_after_the_other(self.found(), outcome, done=outdated_keys.remove)

    def found(self) -> list[str]:
        """All that is marked, in any order: instances that begin at the same time shall not go side by side.

        That is all that keeps them apart. None looks again whether another was there first, so five
        instances do the same work up to five times.
        """
        keys = list(dict.fromkeys(outdated_keys.scan(self.PAGE)))
        read = [outdated_keys.readable(key) for key in keys]
        unreadable = [key for key, member in zip(keys, read, strict=True) if member is None]
        if unreadable:
            signals.discarded.send(sender=Scan, members=unreadable)
        members = [member for member in read if member is not None]
        random.shuffle(members)
        return members

    def lost(self, members: Sequence[str]) -> list[str]:
        return list(outdated_keys.missing(members))

    def backlog(self) -> int:
        """A SCAN of all keys of the server: there is no other way to know. Seconds, for a million."""
        keys = set(outdated_keys.scan(self.COUNTING_PAGE))
        return sum(outdated_keys.readable(key) is not None for key in keys)
