"""A claim is a value: members taken together by one node at one moment. Node and moment make their tokens.

While it waits for a worker its holder is `waiting@NODE`, of the node that claimed it; then the node that works
on it. Below it is what the scripts of the queue reply, read into named values.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.members import Token


@dataclass(frozen=True)
class Claim:
    holder: str
    stamp: str
    members: tuple[str, ...]

    @property
    def node(self) -> str:
        return names.node_of(self.holder)

    @property
    def suffix(self) -> str:
        return f"{self.holder}:{self.stamp}"

    @cached_property
    def ids(self) -> list[int]:
        return names.ids(self.members)

    def only(self, members: Iterable[str]) -> "Claim":
        return replace(self, members=tuple(members))

    def among(self, ids: Collection[int]) -> "Claim":
        return self.only(text for number, text in zip(self.ids, self.members, strict=True) if number in ids)

    def without(self, ids: Collection[int]) -> "Claim":
        return self.among(set(self.ids).difference(ids))

    def split(self, size: int) -> Iterator["Claim"]:
        for start in range(0, len(self.members), size):
            yield self.only(self.members[start : start + size])

    def to_message(self) -> dict[str, str]:
        """Return the claim as a message. Its members are one text, because each process on its way would encode
        and decode a list item by item. A vendor has no colon, so `::` separates them."""
        return {"holder": self.holder, "stamp": self.stamp, "members": "::".join(self.members)}

    @classmethod
    def from_message(cls, message: dict[str, str]) -> "Claim":
        return cls(message["holder"], message["stamp"], tuple(message["members"].split("::")))

    def __len__(self) -> int:
        return len(self.members)

    def __str__(self) -> str:
        """Return what Flower shows: the single execution, or the first one and the number of all."""
        if not self.members:
            return "nothing"
        number, _, vendor = self.members[0].partition(":")
        if len(self) == 1:
            return f"execution {number} {vendor}"
        return f"{len(self):,} executions, from {number} {vendor} on"


@dataclass(frozen=True)
class Batch:
    """The members of one claim, and the state of the queue it saw."""

    claim: Claim
    attempts: dict[str, int]
    backlog: int
    live_nodes: int
    #: Members are left, and there is room for them: another claim would take more.
    more: bool = False
    #: Seconds until the first hot member may be claimed; 0 if no member rests.
    wait: float = 0.0
    unreadable: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Completed:
    """`claim_expired` members were recovered before they were completed, and stay unchanged. `wake`: the caller
    must send a tick, because no other process will."""

    claim_expired: int
    wake: bool


@dataclass(frozen=True)
class Released:
    """`exhausted` members have failed too often, and are not on the queue again."""

    returned: int = 0
    exhausted: tuple[str, ...] = ()

    def __add__(self, other: "Released") -> "Released":
        return Released(self.returned + other.returned, self.exhausted + other.exhausted)


@dataclass(frozen=True)
class Stats:
    """What look-9.lua replies. Moments are in microseconds of Redis's clock, 0 if there was none. If it
    `is_settled`, a node that is not in `nodes` is dead. `signs` of the live nodes and `dead` ones are pairs of a
    node and its last heartbeat."""

    signs: tuple[tuple[str, int], ...]
    dead: tuple[tuple[str, int], ...]
    now: int
    backlog: int
    in_flight: int
    failed_before: int
    pause_ms: int
    waiting_since: int
    ticked: int
    heard: int
    since: int
    is_settled: int

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted(node for node, _ in self.signs))

    def ago(self, moment: int) -> float:
        """Return the seconds since that moment."""
        return max(self.now - moment, 0) / 1_000_000


@dataclass(frozen=True)
class Whereabouts:
    """Where one member is: it may be on the queue and in several claims at once. `failures`: how often it
    failed."""

    is_queued: bool
    failures: int
    tokens: tuple[Token, ...]


class Page(NamedTuple):
    """What claim-11.lua replies."""

    stamp: bytes
    backlog: int
    live_nodes: int
    room: int
    wait_us: int
    members: list[bytes]
    failures: list[bytes]

    @property
    def failed_before(self) -> dict[bytes, int]:
        """The members that failed before, and how often."""
        pairs = zip(self.members, self.failures, strict=False)  # no failures at all if no member failed ever
        return {member: int(times) for member, times in pairs if int(times)}
