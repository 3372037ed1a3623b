"""Dispatch: claim what waits and hand it to the workers, no more than they can take soon."""

from collections.abc import Callable, Sequence
from itertools import groupby

from executions import points
from executions.database import raise_if_away
from executions.errors import DatabaseAway, QueueUnavailable
from tasks import signals
from tasks.conf import refresh_settings
from tasks.pipeline import wakeup
from tasks.pipeline.pacing import CHUNKS_TOGETHER, GATHERING_SECONDS, LEAST_CHUNK, SHRINK, SLOTS, SPACING_SECONDS
from tasks.queue import execution_queue
from tasks.queue.claim import Batch, Claim
from tasks.queue.node import this_node
from tasks.queue.queue import SMALL

Publish = Callable[[Sequence[Claim]], None]


def dispatch(publish: Publish, waiting: int, together: int = CHUNKS_TOGETHER) -> int:
    """Claim batches and publish them as chunks until there is no more work, or no more room.

    `waiting` is how many messages wait for the workers already; all in all there will be no more than
    `depth` for each live node (or SLOTS). `together` is how many chunks it claims at a time. Returns how many
    executions were claimed.
    While the database is away nothing is claimed, by nobody, for REFRESH_PAUSE_SECONDS at a time.

    What if the process dies after a claim, before it is published: the node falls silent and recovery
    gives the claim back. What if publishing fails: the claim is given back here; a chunk that did go out
    finds its tokens gone and does nothing. What if Redis goes away: this node cannot know what it holds,
    so it starts a new life and what the old one held is recovered.
    """
    try:
        return _dispatch(publish, waiting, together)
    except QueueUnavailable:
        this_node.renew()
        raise


def _dispatch(publish: Publish, waiting: int, together: int) -> int:
    conf = refresh_settings()
    queue = execution_queue()
    try:
        raise_if_away()
    except DatabaseAway as exc:
        queue.pause()
        queue.forget_wake()
        signals.database_away.send(sender=dispatch, count=queue.stats().backlog, error=str(exc))
        return 0
    slots = SLOTS - waiting
    if slots <= 0:
        slots = len(queue.stats().nodes) * conf.depth - waiting
    if slots <= 0:
        queue.forget_wake()
        return 0
    total, more = 0, True
    while more and slots > 0:
        batch = queue.claim_batch(this_node.name, conf.size * min(slots, together))
        more = batch.more
        slots = max(slots, batch.live_nodes * conf.depth - waiting)
        if batch.unreadable:
            signals.discarded.send(sender=dispatch, members=batch.unreadable)
        if batch.claim.members:
            points.reach("claimed", batch.claim)
            chunks = chunked(batch, conf.fanout, conf.chunk)
            more = more and len(chunks) < slots
            if not more and batch.backlog > SMALL:
                queue.forget_wake()
            total += _hand_out(publish, batch.claim, chunks, slots)
            waiting += len(chunks)
            slots -= len(chunks)
        if batch.backlog <= SMALL and (batch.claim.members or batch.wait):
            wakeup.check_later(GATHERING_SECONDS)
        if batch.wait:
            # not merged with the check above: that one would find no new mark, and leave the members that rest
            is_apart = abs(batch.wait - GATHERING_SECONDS) >= SPACING_SECONDS
            wakeup.check_later(batch.wait if is_apart else GATHERING_SECONDS + SPACING_SECONDS)
    return total


def _hand_out(publish: Publish, claim: Claim, chunks: Sequence[Claim], slots: int) -> int:
    """As many chunks as there are slots; what is too much goes back uncounted."""
    queue = execution_queue()
    if surplus := [member for chunk in chunks[slots:] for member in chunk.members]:
        queue.mark_failed(claim.only(surplus), counted=False)
    try:
        publish(chunks[:slots])
    except Exception:
        queue.mark_failed(claim, counted=False)
        raise
    count = sum(map(len, chunks[:slots]))
    signals.claimed.send(sender=dispatch, count=count)
    return count


def chunked(batch: Batch, fanout: int | None, chunk: int) -> list[Claim]:
    """Split a batch for the workers: one by one while it is small, in chunks when it is large.

    Members that failed before go apart from the others, in chunks that shrink with each failure: after a
    few tries a member that kills its process is alone, and its neighbours are not counted with it.
    """
    size = min(chunk, fanout or _size(batch.backlog, batch.live_nodes))
    if not batch.attempts:
        return list(batch.claim.in_order().split(size))

    def tries(member: str) -> int:
        return batch.attempts.get(member, 0)

    return [
        part
        for failed, group in groupby(sorted(batch.claim.members, key=tries), key=tries)
        for part in batch.claim.only(group).split(max(1, min(size, chunk // SHRINK**failed)))
    ]


def _size(backlog: int, hands: int) -> int:
    if backlog <= SMALL:
        return 1
    return max(LEAST_CHUNK, -(-backlog // max(1, 2 * hands)))
