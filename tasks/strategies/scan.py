"""`scan`, the original of Harbor: a key for each execution, and every instance refreshes all of them."""

import random
from collections.abc import Sequence

from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.queue import legacy_keys
from harbor_refresh.tasks.strategies import outdated_keys, worker_mutex
from harbor_refresh.tasks.strategies.cycles import refresh_each, run_and_signal
from harbor_refresh.tasks.strategies.strategy import Cycles


class Scan(Cycles):
    name = "scan"

    def connect(self) -> None:
        worker_mutex.connect()

    def mark(self, members: Sequence[str]) -> bool:
        outdated_keys.add(members)
        return False

    def cycle(self) -> Refreshed:
        return run_and_signal(self, self._run)

    def _run(self, outcome: Refreshed) -> None:
        refresh_each(self.find_marked(), outcome, done=outdated_keys.remove)

    def find_marked(self) -> list[str]:
        """List every marked member, in random order, so that instances that begin at the same time do not
        refresh the same executions at the same time.

        Nothing else keeps them apart. No instance checks whether another has refreshed an execution already, so
        five instances do the same work up to five times.
        """
        keys = list(dict.fromkeys(outdated_keys.scan()))
        read = [legacy_keys.readable(key) for key in keys]
        unreadable = [key for key, member in zip(keys, read, strict=True) if member is None]
        if unreadable:
            signals.discarded.send(sender=Scan, members=unreadable)
        members = list(dict.fromkeys(member for member in read if member is not None))
        random.shuffle(members)
        return members

    def lost(self, members: Sequence[str]) -> list[str]:
        return list(outdated_keys.missing(members))

    def backlog(self) -> int:
        """SCAN all keys of the server, because there is no other way to count them. A million takes seconds."""
        found = {legacy_keys.readable(key) for key in outdated_keys.scan()}
        return len(found - {None})
