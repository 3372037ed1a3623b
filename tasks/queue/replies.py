"""What the scripts of the queue reply, read into named values."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from harbor_refresh.tasks.queue.members import Token


@dataclass(frozen=True)
class Marked:
    """`wake`: the caller must send a tick, because no other process will."""

    added: int
    wake: bool


@dataclass(frozen=True)
class Completed:
    """`claim_expired` members were recovered before they were completed, and stay unchanged."""

    count: int
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
class Heartbeat:
    """The number of live nodes, and of the nodes that this heartbeat, and no other, found dead."""

    live: int
    dead: int


@dataclass(frozen=True)
class Stats:
    """What look-11.lua replies. Moments are in microseconds of Redis's clock, 0 if there was none. If it
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
    stamp: int
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
    """What claim-12.lua replies."""

    stamp: bytes
    cursor: bytes
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
