"""Dispatch: claim waiting executions and publish them to the workers, no more than they can take soon."""

from collections.abc import Callable, Sequence
from itertools import groupby

from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.conf.pacing import CHUNKS_TOGETHER, LEAST_CHUNK, SHRINK, SLOTS, SMALL
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.operations.pauses import is_refreshing_paused
from harbor_refresh.tasks.pipeline import legacy_marks, wakeup
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Batch, Claim
from harbor_refresh.tasks.queue.node import this_node

Publish = Callable[[Sequence[Claim]], None]


@this_node.renewed_without_redis()
def dispatch(publish: Publish, waiting: int, together: int = CHUNKS_TOGETHER) -> int:
    """Claim batches and publish them as chunks until no work or no room is left; return how many executions were
    claimed.

    `waiting` is how many messages already wait for the workers; `together` is how many chunks are claimed at a
    time. While the database is down no process claims anything, for DATABASE_PAUSE_SECONDS at a time. Then,
    and while refreshing is paused (tasks/operations), the state of the wake-up stays: so marks send one tick every
    WAKE_TTL_MS, and not one for each mark.

    If the process dies after a claim and before it is published, its heartbeats stop, and recovery releases the
    claim. If publishing fails, the claim is released here, uncounted; a chunk that was sent all the same finds its
    tokens gone and does nothing. A separate broker that is dead takes no tick either: the next one is sent by
    recovery's check (5 s), a mark or beat. If Redis goes down, this node takes a new name.
    """
    queue = execution_queue()
    try:
        is_paused = is_refreshing_paused()
    except DatabaseDown as exc:
        queue.pause()
        signals.database_down.send(sender=dispatch, count=queue.stats().backlog, error=str(exc))
        return 0
    if is_paused:
        queue.tick_ran()
        return 0
    legacy_marks.take_some()
    live_nodes = len(queue.stats().nodes) if _slots(waiting, 0) <= 0 else 0
    if _slots(waiting, live_nodes) <= 0:
        queue.tick_ran()
        queue.tick_has_ended()
        return 0
    total, is_last = 0, False
    while not is_last:
        batch = queue.claim(this_node.name, pacing.CHUNK * min(_slots(waiting, live_nodes), together))
        live_nodes = max(live_nodes, batch.live_nodes)
        slots = _slots(waiting, live_nodes)
        if batch.unreadable:
            signals.discarded.send(sender=dispatch, members=batch.unreadable)
        chunks = chunked(batch, pacing.CHUNK) if batch.claim.members else []
        is_last = not batch.more or len(chunks) >= slots
        if chunks:
            crash_points.reach("claimed", batch.claim)
            if is_last and batch.backlog > SMALL:
                queue.tick_has_ended()
            total += _publish(publish, batch, chunks, slots)
            waiting += len(chunks)
        wakeup.check_after(batch)
    return total


def _slots(waiting: int, live_nodes: int) -> int:
    """How many messages may still be sent: at most DEPTH for each live node, or SLOTS, wait with the broker."""
    return max(SLOTS, live_nodes * pacing.DEPTH) - waiting


def _publish(publish: Publish, batch: Batch, chunks: Sequence[Claim], slots: int) -> int:
    """Publish as many chunks as there are slots; release the surplus."""
    queue = execution_queue()
    if surplus := [member for chunk in chunks[slots:] for member in chunk.members]:
        queue.release(batch.claim.only(surplus))
    try:
        publish(chunks[:slots])
    except Exception:
        queue.release(batch.claim)
        raise
    count = sum(map(len, chunks[:slots]))
    signals.claimed.send(sender=dispatch, count=count)
    return count


def chunked(batch: Batch, chunk: int) -> list[Claim]:
    """Split a batch for the workers: into single members while it is small, into chunks when it is large.

    Members that failed before are kept apart, in chunks that shrink with each failure. So after a few attempts a
    member that kills its process is alone, and no other member is counted as failed with it.
    """
    size = 1
    if batch.backlog > SMALL:
        size = min(chunk, max(LEAST_CHUNK, -(-batch.backlog // max(1, 2 * batch.live_nodes))))
    if not batch.attempts:
        # so that neighbouring ids are together: as text, which takes a third of the time that numbers take
        return list(batch.claim.only(sorted(batch.claim.members)).split(size))

    def tries(member: str) -> int:
        return batch.attempts.get(member, 0)

    return [
        part
        for failed, group in groupby(sorted(batch.claim.members, key=tries), key=tries)
        for part in batch.claim.only(group).split(max(1, min(size, chunk // SHRINK**failed)))
    ]
