"""A hypothesis state machine drives the queue against a model, on a real Redis with a clock of the test.

Add, claim, take over, complete, fail, recover, re-mark in flight, the clock moving forward, standing and
going back, in any order; claims are completed late, twice, or by the wrong hands. After every step the
whole Redis state is what the model says; and, from a ledger that knows nothing of the model: no member is
ever lost, and none is in two live claims.
"""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from executions.queue import Claim
from tests.integration.state import CLOCK, new_client, queue_with_clock, whole_redis

MEMBERS = ["1:A", "2:A", "3:B", "4:B b", "5:C"]
NODES = ["n1", "n2", "n3"]
TTL, STALE, ATTEMPTS = 10, 60, 3
SHARE = 3
SECOND = 1_000_000
MINUTE = 60 * SECOND

members = st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=5)
nodes = st.sampled_from(NODES)


class Model:
    """What the keys must hold, in plain sets and dictionaries."""

    def __init__(self) -> None:
        self.queue: set[str] = set()
        self.in_flight: dict[str, tuple[str, int]] = {}
        self.attempts: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self.stamp: int | None = None
        self.wake = False
        self.pause = False

    def live(self, now: int) -> set[str]:
        return {node for node, last in self.nodes.items() if abs(last - now) <= TTL * SECOND}

    def new_stamp(self, now: int, *, works: bool) -> int:
        """Even while it waits, odd once somebody works; a last one from far ahead was a wrong clock's."""
        last = self.stamp or 0
        if last > now + MINUTE:
            last = 0
        stamp = max(now, last + 1)
        self.stamp = stamp + (stamp % 2 != works)
        return self.stamp

    def holds(self, member: str, claim: Claim) -> bool:
        return self.in_flight.get(member) == (claim.node, int(claim.stamp))

    def give_back(self, member: str, *, counted: bool) -> bool:
        """True if it has failed too often now, and is on nobody's list any more."""
        del self.in_flight[member]
        if counted:
            self.attempts[member] = self.attempts.get(member, 0) + 1
            if self.attempts[member] >= ATTEMPTS:
                del self.attempts[member]
                return True
        self.queue.add(member)
        return False

    def as_redis(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "queue:v2": self.queue,
            "processing": {f"{m}:{node}:{stamp}" for m, (node, stamp) in self.in_flight.items()},
            "claims": {m: f"{node}:{stamp}" for m, (node, stamp) in self.in_flight.items()},
            "attempts": {m: str(times) for m, times in self.attempts.items()},
            "nodes": self.nodes,
            "stamp": None if self.stamp is None else str(self.stamp),
            "wake": "1" if self.wake else None,
            "pause": "1" if self.pause else None,
        }
        return {key: value for key, value in state.items() if value}


class Queue(RuleBasedStateMachine):
    claims: Bundle[Claim] = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.client = new_client()
        self.model = Model()
        self.turn = 0
        #: members not yet completed (or found hopeless) by a claim made after their last mark, with that
        self.owed: dict[str, int] = {}
        self.claimed_at: dict[str, int] = {}

    @initialize()
    def empty_redis(self) -> None:
        self.client.flushall()
        self.queue, self.clock = queue_with_clock(
            self.client,
            fanout=1,
            depth=SHARE,
            max_attempts=ATTEMPTS,
            node_ttl=TTL,
            stale=STALE,
            pause=3600,
        )

    def teardown(self) -> None:
        self.client.close()

    def next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def is_settled(self, member: str) -> None:
        """Unless it was marked again after it was claimed."""
        if self.owed.get(member, 0) < self.claimed_at[member]:
            self.owed.pop(member, None)

    # the verbs

    @rule(marked=members)
    def mark(self, marked: list[str]) -> None:
        was_empty = not self.model.queue
        outcome = self.queue.add(marked)
        assert outcome.added == len(set(marked) - self.model.queue)
        assert outcome.wake == (was_empty and not self.model.wake)
        self.model.queue |= set(marked)
        self.model.wake |= was_empty
        self.owed |= dict.fromkeys(marked, self.next_turn())

    @rule(node=nodes)
    def sign_of_life(self, node: str) -> None:
        live = self.queue.sign_of_life(node)
        self.model.nodes[node] = self.clock.now
        alive = self.model.live(self.clock.now)
        self.model.nodes = {one: self.model.nodes[one] for one in alive}
        assert live == len(alive)

    @rule(target=claims, node=nodes, count=st.integers(1, 6))
    def claim(self, node: str, count: int) -> Any:
        batch = self.queue.claim_batch(node, count)
        model, taken = self.model, batch.claim.members
        model.wake = False
        model.nodes[node] = self.clock.now
        held = model.queue & set(model.in_flight)
        live = len(model.live(self.clock.now))
        room = live * SHARE - len(model.in_flight)
        take = 0 if model.pause else max(0, min(count, room, len(model.queue)))
        assert set(taken) <= model.queue - held
        assert max(0, take - len(held)) <= len(taken) <= take
        assert (batch.backlog, batch.live_nodes) == (len(model.queue), live)
        assert batch.in_flight == len(model.in_flight) + len(taken)
        assert batch.attempts == {m: model.attempts[m] for m in taken if m in model.attempts}
        if not taken:
            return multiple()
        stamp = model.new_stamp(self.clock.now, works=False)
        assert (batch.claim.node, batch.claim.stamp) == (node, str(stamp))
        model.queue -= set(taken)
        model.in_flight |= dict.fromkeys(taken, (node, stamp))
        self.claimed_at |= dict.fromkeys(taken, self.next_turn())
        return batch.claim

    @rule(target=claims, claim=claims, node=nodes)
    def take_over(self, claim: Claim, node: str) -> Any:
        live = {member for member in claim.members if self.model.holds(member, claim)}
        mine = self.queue.take_over(claim, node)
        assert set(mine.members) == live
        if not live:
            return multiple()
        stamp = self.model.new_stamp(self.clock.now, works=True)
        assert (mine.node, mine.stamp) == (node, str(stamp))
        self.model.in_flight |= dict.fromkeys(live, (node, stamp))
        self.model.nodes[node] = self.clock.now
        return mine

    @rule(claim=claims)
    def complete(self, claim: Claim) -> None:
        model = self.model
        live = [member for member in claim.members if model.holds(member, claim)]
        outcome = self.queue.mark_complete(claim)
        assert (outcome.count, outcome.outlived) == (len(live), len(claim) - len(live))
        for member in live:
            del model.in_flight[member]
            model.attempts.pop(member, None)
            self.is_settled(member)
        room = max(len(model.live(self.clock.now)), 1) * SHARE
        asks = bool(model.queue) and not model.pause and len(model.in_flight) * 2 <= room
        assert outcome.wake == (asks and not model.wake)
        model.wake |= asks

    @rule(claim=claims, counted=st.booleans())
    def fail(self, claim: Claim, counted: bool) -> None:
        live = [member for member in claim.members if self.model.holds(member, claim)]
        outcome = self.queue.mark_failed(claim, counted=counted)
        exhausted = {member for member in live if self.model.give_back(member, counted=counted)}
        assert set(outcome.exhausted) == exhausted
        assert outcome.returned == len(live) - len(exhausted)
        for member in exhausted:
            self.is_settled(member)

    @rule()
    def recover(self) -> None:
        alive = self.model.live(self.clock.now)
        suspects = {
            member: stamp % 2 == 1
            for member, (node, stamp) in self.model.in_flight.items()
            if node not in alive or abs(self.clock.now - stamp) > STALE * SECOND
        }
        outcome, unreadable = self.queue.recover_stale()
        exhausted = {
            member for member, worked_on in suspects.items() if self.model.give_back(member, counted=worked_on)
        }
        assert unreadable == ()
        assert set(outcome.exhausted) == exhausted
        assert outcome.returned == len(suspects) - len(exhausted)
        for member in exhausted:
            self.is_settled(member)

    @rule()
    def ask_for_a_tick(self) -> None:
        asks = bool(self.model.queue) and not self.model.pause
        assert self.queue.wake() == (asks and not self.model.wake)
        self.model.wake |= asks

    @rule()
    def look(self) -> None:
        stats = self.queue.stats()
        model = self.model
        assert (stats.now, stats.backlog, stats.in_flight) == (
            self.clock.now,
            len(model.queue),
            len(model.in_flight),
        )
        assert stats.failed_before == len(model.attempts)
        assert stats.nodes == tuple(sorted(model.live(self.clock.now)))
        assert (stats.pause_ms > 0) == model.pause

    # the world around

    @rule(seconds=st.sampled_from([0.000001, 1, TTL - 1, TTL, TTL + 1, STALE, STALE + 1]))
    def clock_moves_forward(self, seconds: float) -> None:
        self.clock.move(seconds)

    @rule(seconds=st.sampled_from([0.000001, 1, TTL, TTL + 1, STALE, STALE + 1]))
    def clock_goes_back(self, seconds: float) -> None:
        self.clock.move(-seconds)

    @rule(node=nodes)
    def node_lives_on_and_makes_no_progress(self, node: str) -> None:
        self.clock.move(STALE + 1)
        self.sign_of_life(node)
        self.recover()

    @rule()
    def database_goes_away(self) -> None:
        self.queue.pause()
        self.model.pause = True

    @rule()
    def pause_is_over(self) -> None:
        self.client.delete(self.queue.keys.pause)
        self.model.pause = False

    @rule()
    def scripts_are_forgotten(self) -> None:
        self.client.script_flush()

    @rule()
    def tick_on_its_way_is_lost(self) -> None:
        self.client.delete(self.queue.keys.wake)
        self.model.wake = False

    # what holds after every step

    @invariant()
    def redis_is_what_the_model_says(self) -> None:
        self.client.persist(self.queue.keys.wake)  # it expires by the real clock, which is not ours
        assert whole_redis(self.client) == self.model.as_redis()
        assert {key.decode() for key in self.client.keys("*")} - {CLOCK} == {
            self.queue.keys.prefix + name for name in self.model.as_redis()
        }

    @invariant()
    def no_member_is_lost(self) -> None:
        waiting = {raw.decode() for raw in self.client.smembers(self.queue.keys.queue)}
        tokens = self.client.smembers(self.queue.keys.processing)
        in_flight = {raw.decode().rsplit(":", 2)[0] for raw in tokens}
        assert set(self.owed) <= waiting | in_flight
        remarked = {m for m, turn in self.owed.items() if turn > self.claimed_at.get(m, 0)}
        assert remarked <= waiting

    @invariant()
    def no_member_is_in_two_live_claims(self) -> None:
        tokens = self.client.smembers(self.queue.keys.processing)
        times = Counter(raw.decode().rsplit(":", 2)[0] for raw in tokens)
        assert all(count == 1 for count in times.values()), times


TestQueueAgainstItsModel = Queue.TestCase
TestQueueAgainstItsModel.settings = settings(
    max_examples=120,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
