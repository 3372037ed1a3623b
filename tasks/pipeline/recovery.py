"""Recover: release the claims of dead nodes, and claims that are too old. They return to the queue. The jobs of a
dead worker are released by tasks/jobs/live_workers.py."""

from collections import defaultdict

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.queue.claim import Claim, Released
from harbor_refresh.tasks.queue.members import Token
from harbor_refresh.tasks.queue.queue import ExecutionQueue


def recover(*, idle: bool = False) -> int:
    """Release stale claims; wake a tick if members wait, or if keys of a running Harbor may. Returns how many were
    recovered, with those that were quarantined.

    `idle`: nothing waits with the broker, so a claim that still waits for a worker has lost its message, and is
    released as soon as the claim of a dead node would be. Any number of processes may do it at once, because a
    token is released once.
    """
    queue = execution_queue()
    released, unreadable = release_stale(queue, idle=idle)
    if unreadable:
        signals.discarded.send(sender=recover, members=unreadable)
    quarantine(names.ids(released.exhausted), refresh_settings().max_attempts)
    count = released.returned + len(released.exhausted)
    if count:
        signals.recovered.send(sender=recover, count=count)
    # no report comes here from a running Harbor, and its keys are not on the queue, so only a tick can find them
    wakeup.check(ignore_pending_wake=True, ignore_empty_queue=is_attached())
    return count


def release_stale(queue: ExecutionQueue, *, idle: bool = False) -> tuple[Released, tuple[bytes, ...]]:
    """Release stale claims in pages. Returns what was released, and the unreadable tokens, which were dropped.

    1. Read processing in pages. A claim is judged once, by the first of its tokens.
    2. Suspect a claim whose node is silent, or whose stamp is too old, or in the future (then the clock has gone
       back). Read the live nodes again before a node counts as silent: a node sends a heartbeat with every claim
       it takes over, so each live node with a token on the page is seen. A node that said that it stops is no
       suspect if its claim waits: another worker has, or will have, the message. If nothing waits with the broker
       (`idle`), also suspect a claim that has waited for longer than a node may be silent, because its message is
       lost with the worker that had it, or by the broker.
    3. Release each suspect by its token. If its owner completes it meanwhile, or another recovery was quicker, the
       token is gone and nothing happens. It counts as a failure only if a process had begun to work on it.
    """
    total, unreadable, sound = Released(), list[bytes](), set[bytes]()
    stats, left = queue.stats(), frozenset[str]()

    def is_older(token: Token, seconds: float) -> bool:
        return abs(stats.now - token.stamp) > seconds * 1_000_000

    def is_sound(token: Token) -> bool:
        """Whether a claim stays. To release too early is harmless: its completion is fenced, and its message finds
        no tokens. A token of a live node from before a gap may be one that a restarted Redis still has although
        its node has completed it."""
        limit = pacing.NODE_TTL_SECONDS if idle and token.is_waiting else pacing.STALE_SECONDS
        is_from_before_a_gap = stats.is_settled and token.stamp < stats.since
        is_answered_for = token.node in stats.nodes or (token.is_waiting and token.node in left)
        return is_answered_for and not is_from_before_a_gap and not is_older(token, limit)

    def is_failure(token: Token) -> bool:
        is_dead = stats.is_settled and token.node not in stats.nodes
        return not token.is_waiting and (is_dead or is_older(token, pacing.STALE_SECONDS))

    for page in queue.pages_of_tokens():
        tokens = {raw: Token.read(raw) for raw in page if _suffix_of(raw) not in sound}
        if any(token and token.node not in stats.nodes for token in tokens.values()):
            stats, left = queue.stats(), queue.nodes_that_left()
        stale = defaultdict(list)
        for raw, token in tokens.items():
            if token is None:
                unreadable.append(raw)
            elif is_sound(token):
                sound.add(_suffix_of(raw))
            else:
                stale[token.holder, token.stamp, is_failure(token)].append(token.member)
        for (holder, stamp, has_failed), members in stale.items():
            claim = Claim(holder, str(stamp), tuple(members))
            total += queue.fail(claim) if has_failed else queue.release(claim)
    queue.drop(unreadable)
    return total, tuple(unreadable)


def _suffix_of(raw: bytes) -> bytes:
    """Return the suffix of a token without parsing it: the text after its second colon."""
    return raw.split(b":", 2)[-1]
