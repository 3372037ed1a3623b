"""Legacy marks: take the marks that Harbor itself writes onto the queue, and turn ours back into Harbor's.

The marks are those of tasks/queue/legacy_keys.py. A tick takes some of them in (`take_some`), so that an old
release may go on writing beside the new one. Two commands move all of them, for a migration and for a way back.

In each direction a mark moves by one script, which adds it on the one side and removes it on the other.

What if the process dies between two pages: what has moved has moved, and the next tick or the next run of the
command moves the rest. What if two processes do it at once: each script moves what it finds at that moment, so
each mark moves once. What if an old release writes a key again after it was taken: the key is new, and a later
look takes it. What if an old release refreshes an execution whose key is taken at that moment: it is refreshed
twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from time import monotonic, sleep

from harbor_refresh.executions import crash_points
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks import pacing, signals
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.pacing import EXPORT_LOOK_SECONDS, EXPORT_PASSES, LOOKS_A_TICK, REFUSED_SECONDS
from harbor_refresh.tasks.pauses.pauses import is_refreshing_paused
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.legacy_transfer import legacy_transfer
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.tasks.redis_address import is_cluster
from harbor_refresh.tasks.strategies import strategy


@dataclass
class Imported:
    """How many marks were taken onto the queue, and how many were left because they cannot be read."""

    taken: int = 0
    unreadable: int = 0


class _Rest:
    """When this process looks again, by its monotonic clock. So most ticks ask Redis nothing."""

    until = 0.0


def are_looked_for_by_recovery() -> bool:
    """Whether recovery must wake a tick to look for Harbor's keys.

    Attached to a running Harbor, no report comes here, so without a backlog no tick comes but those of the
    schedule. A core of 2.9 to 2.15 marks with keys, which are not on the queue, so nothing else shows that work
    waits.
    """
    return is_attached() and pacing.LEGACY_KEYS_PER_SECOND > 0


def take_some() -> int:
    """Take Harbor's marks onto the queue as far as it is time to, and return how many. For a tick alone.

    A look that Redis refuses (its rights do not include these keys) must not keep the tick from its work, so it is
    told and not raised. If Redis is away, the claim that follows says so.
    """
    conf = refresh_settings()
    if not pacing.LEGACY_KEYS_PER_SECOND or is_cluster(conf.redis_url) or monotonic() < _Rest.until:
        return 0
    total = 0
    try:
        for _ in range(LOOKS_A_TICK):
            look = legacy_transfer().look()
            total += look.taken
            if look.taken:
                crash_points.reach("imported", [])
            if not look.is_due_again:
                _Rest.until = monotonic() + look.next_in
                break
    except QueueUnavailable as exc:
        _Rest.until = monotonic() + REFUSED_SECONDS
        signals.legacy_unread.send(sender=take_some, error=str(exc))
    if total:
        signals.legacy_taken.send(sender=take_some, count=total)
    return total


def import_marks(on_page: Callable[[int], None] = lambda _: None) -> Imported:
    """Take all of Harbor's marks onto the queue. `on_page` is told how many keys of the server were looked at.

    A mark that is written meanwhile may be left for a tick, or for a second run. Raises Refused with an older
    design, because these keys are its own marks; without a queue; and on a Redis Cluster.
    """
    _refuse_where_nothing_moves()
    if refresh_settings().in_process:
        raise Refused(
            "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS is 0 or less: there is no queue. Import with an interval "
            "above 0, and set it to 0 when the queue is empty"
        )
    done, looked_at = Imported(), 0
    transfer = legacy_transfer()
    for page in chain(transfer.import_keys(), transfer.import_set()):
        done.taken += page.taken
        done.unreadable += page.left
        looked_at += page.looked_at
        if page.taken:
            crash_points.reach("imported", [])
            wakeup.check()
        on_page(looked_at)
    return done


def count_marks() -> Imported:
    """Return what an import would take, and what it would leave. Changes nothing."""
    _refuse_where_nothing_moves()
    found, transfer = Imported(), legacy_transfer()
    for page in chain(transfer.import_keys(is_dry_run=True), transfer.import_set(is_dry_run=True)):
        found.taken += page.taken
        found.unreadable += page.left
    return found


def export_marks(
    *, as_set: bool = False, force: bool = False, on_page: Callable[[int], None] = lambda _: None
) -> int:
    """Turn all that is on the queue or in flight into Harbor's marks, and return how many. `on_page` is told how
    many there are by then. If the queue is Harbor's set and the set is written, only the claims are turned: what
    is on the queue is a mark of Harbor as it is.

    1. Refuse if workers run and refreshing is not paused: their ticks would take the marks in again.
    2. Move the claims, then the queue, and repeat until a pass moves nothing: while the command reads, a claim may
       be released, and a worker may claim.

    A claim is moved whether its process has ended by itself, was killed, or lives. Its message may still be in the
    broker. Whenever it is delivered, it finds its tokens gone and does nothing.

    What if a worker is refreshing a claim that is moved: its refresh is committed, its completion changes nothing,
    and Harbor refreshes the execution once more. What if a program still marks: its marks stay on the queue. Stop
    it, or run the command again.
    """
    _refuse_where_nothing_moves()
    transfer, queue = legacy_transfer(), execution_queue()
    if not force:
        _refuse_beside_workers(queue)
    total = 0
    for _ in range(EXPORT_PASSES):
        before = total
        for count in transfer.export(queue, as_set=as_set):
            total += count
            if count:
                crash_points.reach("exported", [])
            on_page(total)
        if total == before:
            return total
    return total


def count_left(*, as_set: bool) -> int:
    """Return how many marks of ours there are that an export would turn, or could not read."""
    stats = execution_queue().stats()
    is_queue_ours = not (as_set and legacy_transfer().is_set_the_queue)
    return stats.in_flight + (stats.backlog if is_queue_ours else 0)


def _refuse_beside_workers(queue: ExecutionQueue) -> None:
    """Raise Refused if workers are alive and refreshing is not paused.

    A process that was killed cannot be told from a live one until it has been silent for NODE_TTL_SECONDS.
    So wait until each node is silent or has given another sign of life; a live node gives one every
    HEARTBEAT_SECONDS. A node that appears meanwhile is alive.
    """
    heard = queue.working_nodes()
    while (live := queue.working_nodes()) and not is_refreshing_paused():
        if any(moment != heard.get(node) for node, moment in live.items()):
            raise Refused(
                f"the ticks of {plural(len(live), 'live process', 'live processes')} of workers would take the "
                "marks in again. Stop the workers and beat, or run: manage.py harbor pause"
            )
        sleep(EXPORT_LOOK_SECONDS)


def _refuse_where_nothing_moves() -> None:
    if (design := strategy()).runs_cycles:
        raise Refused(f"the strategy is {design.name}: its marks are Harbor's own, or it has no claims to move")
    if is_cluster(refresh_settings().redis_url):
        raise Refused("the queue is on a Redis Cluster, where Harbor keeps no marks")
