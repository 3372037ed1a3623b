"""The locks of gates: additions go on at once, and what ends the gate waits for those that have begun.

An addition holds the gate in share mode until its transaction ends. What ends the gate queues for it, so that an
addition that comes later waits, however many there are, and finds the gate ended.

A transaction that adds to several executions does so in id order: then no two of them, and what ends their gates,
wait for each other in a circle, which the database would break by an error in one of them."""

from collections.abc import Sequence

from harbor_refresh.executions.database import run


def hold(execution_id: int) -> bool:
    """Keep the gate as it is until the caller's transaction ends. True if it is open."""
    [(is_open,)] = run("hold_gate", execution_id=execution_id)
    return bool(is_open)


def lock(execution_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Lock the open gates of these executions, when all additions that have begun have ended.

    Return the id and the revision of the task of each."""
    run("queue_for_gates", execution_ids=list(execution_ids))
    return run("lock_gates", execution_ids=list(execution_ids))
