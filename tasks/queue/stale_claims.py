"""Stale claims: claims whose node is dead, and claims that are too old. They return to the queue."""

from collections import defaultdict
from dataclasses import dataclass

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import Refresh
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.members import Token
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.tasks.queue.replies import Released, Stats


def release_stale(
    queue: ExecutionQueue, *, idle: bool = False, lost_before: int = 0
) -> tuple[Released, tuple[bytes, ...]]:
    """Release the claims of dead nodes and claims that are too old, in bounded pages.

    1. Read processing in pages. A claim is judged once, by the first of its tokens.
    2. Suspect a claim whose node is silent, or whose stamp is too old, or in the future (then the clock has
       gone back). Read the live nodes again before a node counts as silent: a node sends a heartbeat with
       every claim it takes over, so each live node with a token on the page is seen. A node that said that it
       stops is no suspect if its claim waits: another worker has, or will have, the message, which was sent
       before. (A pool that ends each process after a task has hardly another node.) If nothing waits with the
       broker (`idle`), also suspect a claim of any node that has waited for longer than a node may be silent:
       the worker that had its message is dead, and the message is lost with it. The same if it waits since
       before the moment `lost_before`: the broker has lost its messages then.
    3. Release each suspect by its token. If its owner completes it meanwhile, or another recovery was quicker,
       the token is gone and nothing happens. It counts as a failure only if a process had begun to work on it.

    Returns what was released, and the unreadable tokens, which were dropped.
    """
    total, unreadable = Released(), list[bytes]()
    sound = set[bytes]()
    rule = Rule(queue.conf, queue.stats(), idle, lost_before)
    for page in queue.pages_of_tokens():
        tokens = {raw: Token.read(raw) for raw in page if _suffix_of(raw) not in sound}
        if any(token and token.node not in rule.stats.nodes for token in tokens.values()):
            rule = Rule(queue.conf, queue.stats(), idle, lost_before, queue.nodes_that_left())
        stale = defaultdict(list)
        for raw, token in tokens.items():
            if token is None:
                unreadable.append(raw)
            elif rule.is_sound(token):
                sound.add(_suffix_of(raw))
            else:
                stale[token.holder, token.stamp, rule.is_failure(token)].append(token.member)
        for (holder, stamp, is_failure), members in stale.items():
            claim = Claim(holder, str(stamp), tuple(members))
            total += queue.fail(claim) if is_failure else queue.release(claim)
    queue.drop(unreadable)
    return total, tuple(unreadable)


@dataclass(frozen=True)
class Rule:
    """Tells which tokens are stale, by the state of the queue. `idle`: nothing waits with the broker, and messages
    from before `lost_before` (us) may be lost. `left`: nodes that said that they stop."""

    conf: Refresh
    stats: Stats
    idle: bool
    lost_before: int
    left: frozenset[str] = frozenset()

    def is_sound(self, token: Token) -> bool:
        """Whether a claim stays. To release too early is harmless: its completion is fenced, and its message finds
        no tokens. A token of a live node from before a gap may be one that a restarted Redis still has although
        its node has completed it."""
        limit = pacing.NODE_TTL_SECONDS if self.idle and token.is_waiting else pacing.STALE_SECONDS
        is_from_before_a_gap = self.stats.is_settled and token.stamp < self.stats.since
        is_lost = is_from_before_a_gap or (token.is_waiting and token.stamp < self.lost_before)
        is_answered_for = token.node in self.stats.nodes or (token.is_waiting and token.node in self.left)
        return is_answered_for and not is_lost and not self._is_older(token, limit)

    def is_failure(self, token: Token) -> bool:
        """Whether a process had begun to work on it, and is dead or too slow. Waiting is no failure."""
        is_dead = self.stats.is_settled and token.node not in self.stats.nodes
        return not token.is_waiting and (is_dead or self._is_older(token, pacing.STALE_SECONDS))

    def _is_older(self, token: Token, seconds: float) -> bool:
        return abs(self.stats.now - token.stamp) > seconds * 1_000_000


def _suffix_of(raw: bytes) -> bytes:
    """Return the suffix of a token without parsing it: the text after its second colon."""
    return raw.split(b":", 2)[-1]
