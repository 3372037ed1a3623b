"""The older designs: `scan`, `lock`, `hash` and `upstream`. Each worker runs a cycle when a tick comes."""

import random
import re
import socket
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import takewhile
from typing import Any, cast

from harbor_refresh.executions.errors import DatabaseDown, NoInstance
from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue import sets
from harbor_refresh.tasks.queue.connection import patient, single
from harbor_refresh.tasks.queue.keys import HARBORS_PATTERN, harbors_keys, member_of_harbors, queue_key
from harbor_refresh.tasks.queue.sets import PAGE, pages
from harbor_refresh.tasks.strategies.current import Strategy
from harbor_refresh.tasks.strategies.exclusion import cycle_lock
from harbor_refresh.tasks.strategies.original_refresh import refresh_one

#: Keys of the server that one SCAN looks at, as in Harbor since June 2023.
SCAN_COUNT = 1_000
#: Members that `upstream` pops at once.
BATCH = 100
Work = Generator[tuple[str, Callable[[str], object]], None, None]


class OlderDesign(Strategy):
    def cycle(self) -> Refreshed:
        outcome = Refreshed()
        try:
            with closing(self._work(outcome)) as work:
                for member, done in work:
                    refreshed = refresh_one(names.execution_id(member))
                    outcome += refreshed
                    if not refreshed.failed:
                        done(member)
        except DatabaseDown as exc:
            signals.database_down.send(sender=type(self), count=self.backlog(), error=str(exc))
        signals.refreshed.send(sender=type(self), outcome=outcome)
        return outcome

    @abstractmethod
    def _work(self, outcome: Refreshed) -> Work:
        """Yield each member that this node refreshes in a cycle, and the function to call with it unless it has
        failed. The outcome is that of the members before it."""

    def _discard(self, unreadable: Sequence[bytes]) -> None:
        if unreadable:
            signals.discarded.send(sender=type(self), members=unreadable)


class Scan(OlderDesign):
    """`scan`, the original of Harbor: a key for each execution, and every instance refreshes all of them. No
    instance checks whether another has refreshed an execution already.

    The marks are those of Harbor 2.8 to 2.15 (tasks/queue/keys.py), without an index, so all keys of the server
    are scanned. A mark is written as Harbor writes it; the key of the seeds is read and removed as well.
    """

    name = "scan"
    marks_on_queue = False

    def mark(self, members: Sequence[str]) -> bool:
        for page in pages(members):
            patient().mset({harbors_keys(member)[0]: "" for member in page})
        return False

    def _work(self, outcome: Refreshed) -> Work:
        yield from ((member, self._unmark) for member in self.find_marked())

    def find_marked(self) -> list[str]:
        """List every marked member, in random order, so that instances that begin at the same time do not refresh
        the same executions at the same time. Nothing else keeps them apart."""
        read = {key: member_of_harbors(key) for key in self._keys()}
        self._discard([key for key, member in read.items() if member is None])
        members = list(dict.fromkeys(member for member in read.values() if member is not None))
        random.shuffle(members)
        return members

    def _keys(self) -> Iterator[bytes]:
        return patient().scan_iter(HARBORS_PATTERN, SCAN_COUNT)

    def _unmark(self, member: str) -> None:
        patient().delete(*harbors_keys(member))

    def lost(self, members: Sequence[str]) -> list[str]:
        missing: list[str] = []
        for page in pages(members):
            found = cast("list[Any]", patient().mget([key for member in page for key in harbors_keys(member)]))
            pairs = zip(page, found[::2], found[1::2], strict=True)
            missing += [member for member, *values in pairs if values == [None, None]]
        return missing

    def backlog(self) -> int:
        return len({member_of_harbors(key) for key in self._keys()} - {None})


class Lock(Scan):
    """`lock`: like `scan`, but one instance at a time works a cycle, and the other instances wait."""

    name = "lock"

    def _work(self, outcome: Refreshed) -> Work:
        """Work under the lock. If it is lost, end, because the new holder refreshes the rest."""
        with cycle_lock() as is_ours:
            if is_ours is None:
                return
            yield from takewhile(lambda _: is_ours(), super()._work(outcome))
            if not is_ours():
                signals.lock_lost.send(sender=Lock)


class PlainSet(OlderDesign):
    """Marks in the set `queue:v2` without claims: plain SADD, SSCAN, SREM and SPOP."""

    @property
    def _key(self) -> str:
        return queue_key(refresh_settings().key_prefix)

    def mark(self, members: Iterable[str]) -> bool:
        for page in pages(members):
            patient().sadd(self._key, *page)
        return False

    def _unmark(self, *members: str | bytes) -> None:
        for page in pages(members):
            patient().srem(self._key, *page)

    def lost(self, members: Sequence[str]) -> list[str]:
        """Members that an instance of `upstream` has popped are in no key, so reconcile may mark executions that
        are being refreshed."""
        return list(sets.missing(patient(), self._key, members))

    def backlog(self) -> int:
        return patient().scard(self._key)


def this_instance() -> tuple[int, int]:
    """Return the number of this instance, and how many there are. Read the number from the settings, or without
    CORE_INSTANCE_ID from the ordinal of a StatefulSet's host name (`harbor-core-3`). Raises NoInstance if there is
    no number from 0 to the total - 1."""
    conf = refresh_settings()
    host = socket.gethostname()
    total = conf.instance_total
    if total is None:
        raise NoInstance(
            "CORE_INSTANCE_TOTAL: got nothing, takes how many instances there are. REFRESH_STRATEGY=hash needs it."
        )
    ordinal = re.search(r"-([0-9]{1,9})$", host)
    number = conf.instance_id if conf.instance_id is not None else ordinal and int(ordinal[1])
    takes = f"takes a whole number from 0 to {total - 1}, CORE_INSTANCE_TOTAL being {total}"
    if number is None:
        raise NoInstance(f"CORE_INSTANCE_ID: got nothing, and the host name {host!r} ends in no ordinal; {takes}.")
    if number >= total:
        origin = "" if conf.instance_id is not None else f" from the host name {host!r}"
        raise NoInstance(f"CORE_INSTANCE_ID: got '{number}'{origin}, {takes}.")
    return number, total


def refuse_without_a_number(**_: Any) -> None:
    """End the worker before it starts, if it has no number."""
    conf = refresh_settings()
    if conf.strategy != "hash" or conf.in_process:
        return
    try:
        this_instance()
    except NoInstance as exc:
        raise SystemExit(str(exc)) from None


class Hash(PlainSet):
    """`hash`: each instance refreshes the executions whose id, modulo the number of instances, is its own
    number."""

    name = "hash"

    def _work(self, outcome: Refreshed) -> Work:
        number, total = this_instance()
        for page in sets.scan(lambda cursor: patient().sscan(self._key, cursor, count=PAGE)):
            members, unreadable = names.sorted_out(page)
            self._unmark(*unreadable)
            self._discard(unreadable)
            own = (one for one in members if names.execution_id(one) % total == number)
            yield from ((member, self._unmark) for member in own)


class Upstream(PlainSet):
    """`upstream`, the design that Harbor merged: pop a hundred members and refresh them, until the set is empty.

    If the process dies, up to a hundred popped members are lost, and reconcile must find them; the original has
    none (harbor #21961). Failed members are put back at the end of their batch. The cycle ends at a batch that
    holds only members that have failed in this cycle. The original would pop its own returns without a pause.
    """

    name = "upstream"

    def _work(self, outcome: Refreshed) -> Work:
        # once: if the answer is lost, so are the members
        while popped := cast("list[bytes]", single().spop(self._key, BATCH)):
            failed_before = set(outcome.failed)
            members, unreadable = names.sorted_out(popped)
            self._discard(unreadable)
            undone = dict.fromkeys(members)
            try:
                yield from ((member, undone.pop) for member in members)
            finally:
                self.mark(undone)
            if undone and failed_before.issuperset(names.ids(members)):
                return
