"""Dispatch: claim what waits and hand it to the workers, no more than they can take soon."""

from collections.abc import Callable, Sequence
from itertools import groupby

from executions import points, signals
from executions.conf import refresh_settings
from executions.database import raise_if_away
from executions.errors import DatabaseAway, QueueUnavailable
from executions.queue import Batch, Claim, execution_queue, this_node

#: Up to this backlog every execution is a subtask of its own, which a person can read in Flower.
SMALL = 32
#: How much smaller a member's chunk gets with each failure, until it stands alone and fails alone.
SHRINK = 10

Publish = Callable[[Sequence[Claim]], None]


def dispatch(publish: Publish, waiting: int) -> int:
    """Claim batches and publish them as chunks until there is no more work, or no more room.

    `waiting` is how many messages wait for the workers already; all in all there will be no more than
    `depth` for each live node (or SMALL). Returns how many executions were claimed.
    While the database is away nothing is claimed, by nobody, for REFRESH_PAUSE_SECONDS at a time.

    What if the process dies after a claim, before it is published: the node falls silent and recovery
    gives the claim back. What if publishing fails: the claim is given back here; a chunk that did go out
    finds its tokens gone and does nothing. What if Redis goes away: this node cannot know what it holds,
    so it starts a new life and what the old one held is recovered.
    """
    try:
        return _dispatch(publish, waiting)
    except QueueUnavailable:
        this_node.renew()
        raise


def _dispatch(publish: Publish, waiting: int) -> int:
    conf = refresh_settings()
    queue = execution_queue()
    try:
        raise_if_away()
    except DatabaseAway as exc:
        queue.pause()
        queue.forget_wake()
        signals.database_away.send(sender=dispatch, count=queue.stats().backlog, error=str(exc))
        return 0
    total = 0
    slots = max(SMALL, len(queue.stats().nodes) * conf.depth) - waiting
    if slots <= 0:
        queue.forget_wake()
    while slots > 0:
        batch = queue.claim_batch(this_node.name, conf.chunk)
        if batch.unreadable:
            signals.discarded.send(sender=dispatch, members=batch.unreadable)
        if not batch.claim.members:
            if batch.unreadable:
                continue
            break
        points.reach("claimed", batch.claim.ids)
        chunks = chunked(batch, conf.fanout, conf.chunk, conf.depth)
        for chunk in chunks[slots:]:
            queue.mark_failed(chunk, counted=False)
        try:
            publish(chunks[:slots])
        except Exception:
            queue.mark_failed(batch.claim, counted=False)
            raise
        count = sum(map(len, chunks[:slots]))
        signals.claimed.send(sender=dispatch, count=count)
        total += count
        slots -= len(chunks)
    return total


def chunked(batch: Batch, fanout: int | None, chunk: int, depth: int) -> list[Claim]:
    """Split a batch for the workers: one by one while it is small, in chunks when it is large.

    Members that failed before go apart from the others, in chunks that shrink with each failure: after a
    few tries a member that kills its process is alone, and its neighbours are not counted with it.
    """
    size = fanout or _size(batch.backlog, batch.live_nodes * depth, chunk)

    def tries(member: str) -> int:
        return batch.attempts.get(member, 0)

    return [
        part
        for failed, group in groupby(sorted(batch.claim.members, key=tries), key=tries)
        for part in batch.claim.only(group).split(max(1, min(size, chunk // SHRINK**failed)))
    ]


def _size(backlog: int, hands: int, chunk: int) -> int:
    if backlog <= SMALL:
        return 1
    return min(chunk, -(-backlog // max(1, hands)))
