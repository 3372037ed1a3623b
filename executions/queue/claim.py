"""A claim is a value: members taken together by one node at one moment, which is what makes their tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from executions.queue import members as names


@dataclass(frozen=True)
class Claim:
    node: str
    stamp: str
    members: tuple[str, ...]

    @property
    def suffix(self) -> str:
        return f"{self.node}:{self.stamp}"

    @property
    def ids(self) -> list[int]:
        return names.ids(self.members)

    def only(self, members: Iterable[str]) -> "Claim":
        return replace(self, members=tuple(members))

    def split(self, size: int) -> Iterator["Claim"]:
        for start in range(0, len(self.members), size):
            yield self.only(self.members[start : start + size])

    def to_message(self) -> dict[str, Any]:
        return {"node": self.node, "stamp": self.stamp, "members": list(self.members)}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> "Claim":
        return cls(message["node"], message["stamp"], tuple(message["members"]))

    def __len__(self) -> int:
        return len(self.members)

    def __str__(self) -> str:
        """What a person reads in Flower: the one execution, or how many and from where to where."""
        if len(self) == 1:
            number, _, vendor = self.members[0].partition(":")
            return f"execution {number} {vendor}"
        numbers = self.ids
        return f"{len(self):,} executions, {min(numbers)}…{max(numbers)}" if numbers else "nothing"


@dataclass(frozen=True)
class Batch:
    """What one claim brought, and what it saw of the queue around it."""

    claim: Claim
    attempts: dict[str, int]
    backlog: int
    in_flight: int
    live_nodes: int
    unreadable: tuple[bytes, ...] = ()
