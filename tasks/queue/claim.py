"""A claim is a value: members taken together by one node at one moment, which is what makes their tokens."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tasks.queue import members as names


@dataclass(frozen=True)
class Claim:
    node: str
    stamp: str
    members: tuple[str, ...]

    @property
    def suffix(self) -> str:
        return f"{self.node}:{self.stamp}"

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
        """Neighbours beside each other. As text, which is the order of the ids but for their length: to read
        them would take three times as long, and a neighbour is as good."""
        return self.only(sorted(self.members))

    def split(self, size: int) -> Iterator["Claim"]:
        for start in range(0, len(self.members), size):
            yield self.only(self.members[start : start + size])

    def to_message(self) -> dict[str, str]:
        """Thousands of members travel as one text: a list of them would be made and read again one by one
        in each process on its way. A vendor has no colon, so two of them part the members."""
        return {"node": self.node, "stamp": self.stamp, "members": "::".join(self.members)}

    @classmethod
    def from_message(cls, message: dict[str, str]) -> "Claim":
        return cls(message["node"], message["stamp"], tuple(message["members"].split("::")))

    def __len__(self) -> int:
        return len(self.members)

    def __str__(self) -> str:
        """What a person reads in Flower: the one execution, or the first and how many there are."""
        if not self.members:
            return "nothing"
        number, _, vendor = self.members[0].partition(":")
        if len(self) == 1:
            return f"execution {number} {vendor}"
        return f"{len(self):,} executions, from {number} {vendor} on"


@dataclass(frozen=True)
class Batch:
    """What one claim brought, and what it saw of the queue around it."""

    claim: Claim
    attempts: dict[str, int]
    backlog: int
    live_nodes: int
    #: Another claim would bring more: some are left, and there is room for them.
    more: bool = False
    #: Seconds until a member that was too hot may be claimed; 0 if there was none.
    wait: float = 0.0
    unreadable: tuple[bytes, ...] = ()
