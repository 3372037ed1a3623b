"""A claim is a value: members taken together by one node at one moment. Node and moment make their tokens.

While it waits for a worker its holder is `waiting@NODE`, of the node that claimed it; then the node that works
on it.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from harbor_refresh.tasks.queue import members as names


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

    def among(self, ids: Container[int]) -> "Claim":
        return self.only(text for number, text in zip(self.ids, self.members, strict=True) if number in ids)

    def without(self, ids: Container[int]) -> "Claim":
        return self.only(text for number, text in zip(self.ids, self.members, strict=True) if number not in ids)

    def in_order(self) -> "Claim":
        """Sort the members so that neighbouring ids are together: as text, which takes a third of the time that
        numbers take, and differs only where ids differ in length."""
        return self.only(sorted(self.members))

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
