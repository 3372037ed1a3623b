"""The claims in flight, as a page shows them: how many executions each has, which node holds it, and its age."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harbor_refresh.tasks.queue.members import Token, execution_id
from harbor_refresh.tasks.queue.queue import ExecutionQueue

#: The most tokens that are read, in pages, so that a page of the admin takes no longer with a long queue.
MOST_TOKENS = 40_000


@dataclass(frozen=True)
class ClaimInFlight:
    """Executions that were claimed together. `first` is one of them; `age` is in seconds."""

    node: str
    is_waiting: bool
    is_alive: bool
    count: int
    first: int
    age: float


@dataclass(frozen=True)
class NodeAtWork:
    """What a node holds. `silent`: seconds since its last heartbeat; None if it has none any more."""

    name: str
    is_alive: bool
    silent: float | None
    works_on: int
    waiting: int
    oldest: float | None


@dataclass(frozen=True)
class ClaimOverview:
    """`claims` are in order, the oldest first. `read` of `in_flight` tokens were read; a token may have been read
    twice, and `unreadable` ones are no claims."""

    in_flight: int
    read: int
    unreadable: int
    claims: Sequence[ClaimInFlight]
    nodes: Sequence[NodeAtWork]


def claims_in_flight(queue: ExecutionQueue, most: int = MOST_TOKENS) -> ClaimOverview:
    """Read the tokens, and group them by claim and by node. Changes nothing."""
    look = queue.stats()
    counts: Counter[bytes] = Counter()
    firsts: dict[bytes, bytes] = {}
    read = 0
    for page in queue.pages_of_tokens():
        for raw in page:
            suffix = raw.split(b":", 2)[-1]
            counts[suffix] += 1
            firsts.setdefault(suffix, raw)
        read += len(page)
        if read >= most:
            break
    heard = dict(look.signs)
    claims, unreadable = [], 0
    for suffix, raw in firsts.items():
        token = Token.read(raw)
        if token is None:
            unreadable += counts[suffix]
            continue
        claims.append(
            ClaimInFlight(
                token.node,
                token.is_waiting,
                token.node in heard,
                counts[suffix],
                execution_id(token.member),
                look.ago(token.stamp),
            )
        )
    claims.sort(key=lambda one: -one.age)
    silent = {name: look.ago(moment) for name, moment in (*look.dead, *look.signs)}
    its: dict[str, list[ClaimInFlight]] = {name: [] for name in sorted(heard)}
    for one in claims:
        its.setdefault(one.node, []).append(one)
    nodes = [_node(name, name in heard, silent.get(name), held) for name, held in its.items()]
    return ClaimOverview(look.in_flight, read, unreadable, claims, nodes)


def _node(name: str, is_alive: bool, silent: float | None, its: Sequence[ClaimInFlight]) -> NodeAtWork:
    return NodeAtWork(
        name,
        is_alive,
        silent,
        sum(one.count for one in its if not one.is_waiting),
        sum(one.count for one in its if one.is_waiting),
        its[0].age if its else None,
    )
