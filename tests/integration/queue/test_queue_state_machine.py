"""A hypothesis state machine drives the queue against a model, on a real Redis with a clock of the test.

Add, claim, take over, complete, fail, recover, re-mark in flight, the clock moving forward, standing and
going back, in any order; claims are completed late, twice, or by the wrong hands. A member that is marked
again in flight may be in several live claims. After every step the whole Redis state is what the model says;
and, from a ledger that knows nothing of the model: no member is ever lost, and none whose last mark came after
its last claim is taken for settled.

Pages are of two members, and the sets are hash tables from the second member on, so that claims go through
the queue by cursor as they do through a long one. Heat is off: it has tests of its own.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.conf.pacing import MARKED_SINCE, TICK_SENT
from harbor_refresh.tasks.pipeline.recovery import release_stale
from harbor_refresh.tasks.queue import queue as queue_module
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.members import Token
from tests.integration.redis_state import (
    CLOCK,
    OBSERVED,
    Redis,
    new_client,
    queue_with_clock,
    sets_are_hash_tables,
    whole_redis,
)

MEMBERS = ["1:A", "2:A", "3:B", "4:B b", "5:C", "6:C", "7:C", "8:C"]
NODES = ["n1", "n2", "n3"]
TTL, STALE, ATTEMPTS = 10, 60, 3
SIZE, DEPTH = 2, 3
SHARE = SIZE * DEPTH
PAGE, SMALL = 2, 2
SECOND = 1_000_000
PAUSE = 3_600

members = st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=8)
nodes = st.sampled_from(NODES)

#: Member, holder and stamp: what makes a token.
Flying = tuple[str, str, int]


@pytest.fixture(autouse=True)
def small_pages_and_hash_tables(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(queue_module, "PAGE", PAGE)
    monkeypatch.setattr(queue_module.pages, "__defaults__", (PAGE,))
    monkeypatch.setattr(pacing, "SMALL", SMALL)
    with sets_are_hash_tables(redis):
        yield


def tokens_of(claim: Claim) -> list[Flying]:
    return [(member, claim.holder, int(claim.stamp)) for member in claim.members]


def is_waiting(holder: str) -> bool:
    return holder.startswith("waiting@")


def node_of(holder: str) -> str:
    return holder.removeprefix("waiting@")


class Model:
    """What the keys must hold, in plain sets and dictionaries."""

    def __init__(self) -> None:
        self.queue: set[str] = set()
        self.in_flight: set[Flying] = set()
        self.attempts: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self.cursor: str | None = None
        self.wake: str | None = None
        self.marks: dict[str, int] = {}
        self.pause = False
        self.pause_of_a_wrong_clock = False

    def live(self, now: int) -> set[str]:
        return {node for node, last in self.nodes.items() if abs(last - now) <= TTL * SECOND}

    def live_of(self, claim: Claim) -> list[Flying]:
        return [token for token in tokens_of(claim) if token in self.in_flight]

    def mark(self, marked: list[str]) -> bool:
        """Page by page; whether a tick must be sent."""
        woken = False
        for start in range(0, len(marked), PAGE):
            page = marked[start : start + PAGE]
            new = set(page) - self.queue
            is_noted = bool(new) and (len(self.queue) <= SMALL or not self.in_flight)
            self.queue |= new
            if not new and len(page) == 1 and len(self.queue) <= SMALL:
                self.marks[page[0]] = self.marks.get(page[0], 0) + 1
            if is_noted:
                woken |= self.wake is None
                self.wake = MARKED_SINCE if self.wake else TICK_SENT
        return woken

    def room(self, now: int) -> int:
        """No scraps: room for a part of a chunk is none while others work."""
        room = len(self.live(now)) * SHARE - len(self.in_flight)
        if self.pause or (self.in_flight and room < min(SIZE, len(self.queue))):
            return 0
        return max(room, 0)

    def give_back(self, token: Flying, *, counted: bool) -> bool:
        """True if it has failed too often now, and this claim of it is on nobody's list any more."""
        member = token[0]
        self.in_flight.remove(token)
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
            "processing": {f"{member}:{node}:{stamp}" for member, node, stamp in self.in_flight},
            "attempts": {m: str(times) for m, times in self.attempts.items()},
            "nodes": self.nodes,
            "cursor": self.cursor,
            "wake": self.wake,
            "marks": {m: str(times) for m, times in self.marks.items()},
            "pause": "1" if self.pause or self.pause_of_a_wrong_clock else None,
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
        #: the turn in which each token's member was claimed, and the last such turn of each member
        self.claimed_at: dict[Flying, int] = {}
        self.last_claimed: dict[str, int] = {}
        #: when each member on the queue came there
        self.waits_since: dict[str, int] = {}

    @initialize()
    def empty_redis(self) -> None:
        self.client.flushall()
        self.queue, self.clock = queue_with_clock(
            self.client,
            chunk=SIZE,
            depth=DEPTH,
            max_attempts=ATTEMPTS,
            node_ttl=TTL,
            stale=STALE,
            pause=PAUSE,
            rest=0.0,
        )

    def teardown(self) -> None:
        self.client.close()

    def next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def is_settled(self, token: Flying) -> None:
        """Unless it was marked again after this claim of it."""
        if self.owed.get(token[0], 0) < self.claimed_at[token]:
            self.owed.pop(token[0], None)

    # the verbs

    @rule(marked=members)
    def mark(self, marked: list[str]) -> None:
        assert self.queue.mark(marked) == self.model.mark(marked)
        self.owed |= dict.fromkeys(marked, self.next_turn())

    @rule(node=nodes)
    def heartbeat(self, node: str) -> None:
        dead = self.queue.heartbeat(node)
        self.model.nodes[node] = self.clock.now
        alive, all_there_were = self.model.live(self.clock.now), len(self.model.nodes)
        self.model.nodes = {one: self.model.nodes[one] for one in alive}
        assert dead == all_there_were - len(alive)

    @rule(target=claims, node=nodes, count=st.integers(1, 9))
    def claim(self, node: str, count: int) -> Any:
        self.clock.move(0.000001)  # so long at least any script takes
        batch = self.queue.claim(node, count)
        model, taken = self.model, batch.claim.members
        model.nodes[node] = self.clock.now
        room = model.room(self.clock.now)
        most = min(count, room, len(model.queue))
        assert set(taken) <= model.queue
        assert len(set(taken)) == len(taken)
        assert len(taken) == most
        assert (batch.backlog, batch.live_nodes) == (len(model.queue), len(model.live(self.clock.now)))
        assert batch.more == (0 < len(taken) < len(model.queue) and room - len(taken) >= SIZE)
        assert batch.attempts == {m: model.attempts[m] for m in taken if m in model.attempts}
        assert (batch.wait, batch.unreadable) == (0, ())
        if not taken:
            model.wake = model.wake if model.pause else None
            return multiple()
        if len(model.queue) <= SMALL:
            model.wake = TICK_SENT
            for member in taken:
                model.marks.pop(member, None)
        model.cursor = self.client.get(self.queue.keys.cursor).decode()
        assert model.cursor.isdecimal()
        assert (batch.claim.holder, batch.claim.stamp) == (f"waiting@{node}", str(self.clock.now))
        model.queue -= set(taken)
        tokens = tokens_of(batch.claim)
        model.in_flight |= set(tokens)
        turn = self.next_turn()
        self.claimed_at |= dict.fromkeys(tokens, turn)
        self.last_claimed |= dict.fromkeys(taken, turn)
        return batch.claim

    @rule(target=claims, claim=claims, node=nodes)
    def take_over(self, claim: Claim, node: str) -> Any:
        live = self.model.live_of(claim)
        self.clock.move(0.000001)
        mine = self.queue.take_over(claim, node)
        assert mine.members == tuple(member for member, _, _ in live)
        if not live:
            return multiple()
        stamp = self.clock.now
        assert (mine.holder, mine.stamp) == (node, str(stamp))
        self.model.in_flight -= set(live)
        self.model.in_flight |= set(tokens_of(mine))
        self.claimed_at |= {(token[0], node, stamp): self.claimed_at[token] for token in live}
        self.model.nodes[node] = self.clock.now
        return mine

    @rule(claim=claims)
    def complete(self, claim: Claim) -> None:
        model = self.model
        live = model.live_of(claim)
        outcome = self.queue.complete(claim)
        assert outcome.claim_expired == len(claim) - len(live)
        for token in live:
            model.in_flight.remove(token)
            model.attempts.pop(token[0], None)
            self.is_settled(token)
        room = max(len(model.live(self.clock.now)), 1) * SHARE
        asks = bool(model.queue) and not model.pause and len(model.in_flight) * 2 <= room
        assert outcome.wake == (asks and not model.wake)
        if asks and not model.wake:
            model.wake = TICK_SENT

    @rule(claim=claims, counted=st.booleans())
    def fail(self, claim: Claim, counted: bool) -> None:
        live = self.model.live_of(claim)
        outcome = self.queue.fail(claim) if counted else self.queue.release(claim)
        exhausted = [token for token in live if self.model.give_back(token, counted=counted)]
        assert outcome.exhausted == tuple(member for member, _, _ in exhausted)
        assert outcome.returned == len(live) - len(exhausted)
        for token in exhausted:
            self.is_settled(token)

    @rule(idle=st.booleans())
    def recover(self, idle: bool) -> None:
        alive = self.model.live(self.clock.now)
        suspects = [
            (member, holder, stamp)
            for member, holder, stamp in self.model.in_flight
            if node_of(holder) not in alive
            or abs(self.clock.now - stamp) > (TTL if idle and is_waiting(holder) else STALE) * SECOND
        ]
        outcome, unreadable = release_stale(self.queue, idle=idle)
        exhausted = [token for token in suspects if self.model.give_back(token, counted=not is_waiting(token[1]))]
        assert unreadable == ()
        assert sorted(outcome.exhausted) == sorted(member for member, _, _ in exhausted)
        assert outcome.returned == len(suspects) - len(exhausted)
        # of two claims that failed at once either may be the one that was too much
        for member, _, _ in exhausted:
            for token in suspects:
                if token[0] == member:
                    self.is_settled(token)

    @rule(anyway=st.booleans(), empty=st.booleans())
    def ask_for_a_tick(self, anyway: bool, empty: bool) -> None:
        """A moment after a tick: only if somebody marked since."""
        model = self.model
        asks = (bool(model.queue) or empty) and not model.pause and (anyway or model.wake != TICK_SENT)
        assert self.queue.must_send_tick(ignore_pending_wake=anyway, ignore_empty_queue=empty) == asks
        if asks or (model.wake == TICK_SENT and not anyway):
            model.wake = TICK_SENT if asks else None

    @rule(asked=members)
    def ask_who_is_lost(self, asked: list[str]) -> None:
        known = self.model.queue | {member for member, _, _ in self.model.in_flight}
        assert self.queue.lost(asked) == sorted(set(asked) - known)

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
        self.heartbeat(node)
        self.recover(idle=False)

    @rule()
    def database_goes_down(self) -> None:
        self.queue.pause()
        self.model.pause, self.model.pause_of_a_wrong_clock = True, False

    @rule()
    def clock_goes_back_in_a_pause(self) -> None:
        """The key stays for longer than any pause, and pauses nothing."""
        self.client.set(self.queue.keys.pause, 1, px=2 * PAUSE * 1000)
        self.model.pause, self.model.pause_of_a_wrong_clock = False, True

    @rule()
    def pause_is_over(self) -> None:
        self.client.delete(self.queue.keys.pause)
        self.model.pause = self.model.pause_of_a_wrong_clock = False

    @rule()
    def scripts_are_forgotten(self) -> None:
        self.client.script_flush()

    @rule()
    def tick_on_its_way_is_lost(self) -> None:
        self.queue.tick_has_ended()
        self.model.wake = None

    # what holds after every step

    @invariant()
    def all_holds(self) -> None:
        """One look at Redis for all of it, because there are thousands of steps."""
        for key in (self.queue.keys.wake, self.queue.keys.marks):
            self.client.persist(key)  # they expire by the real clock, which is not ours
        state = whole_redis(self.client, observed=True)
        self.redis_is_what_the_model_says(state)
        self.each_member_on_the_queue_is_noted_since_when_it_waits(state)
        self.no_member_is_lost(state)
        self.whoever_is_in_flight_is_told_once_for_each_claim()

    def redis_is_what_the_model_says(self, state: dict[str, Any]) -> None:
        assert {name: held for name, held in state.items() if name not in OBSERVED} == self.model.as_redis()
        observed = {self.queue.conf.key_prefix + name for name in OBSERVED}
        assert {key.decode() for key in self.client.keys("*")} - {CLOCK, self.queue.keys.presence} - observed == {
            self.queue.conf.key_prefix + name for name in self.model.as_redis()
        }

    def each_member_on_the_queue_is_noted_since_when_it_waits(self, state: dict[str, Any]) -> None:
        """No step takes a member off the queue and puts it back."""
        waits = {member: self.waits_since.get(member, self.clock.now) for member in self.model.queue}
        self.waits_since = waits
        assert state.get("waiting", {}) == waits
        look = self.queue.stats()
        assert (look.backlog, look.waiting_since) == (len(waits), min(waits.values(), default=0))

    def no_member_is_lost(self, state: dict[str, Any]) -> None:
        waiting = state.get("queue:v2", set())
        in_flight = {token.rsplit(":", 2)[0] for token in state.get("processing", ())}
        assert set(self.owed) <= waiting | in_flight
        remarked = {m for m, turn in self.owed.items() if turn > self.last_claimed.get(m, 0)}
        assert remarked <= waiting

    def whoever_is_in_flight_is_told_once_for_each_claim(self) -> None:
        assert set(self.queue.tokens()) == {Token(*token) for token in self.model.in_flight}


TestQueueAgainstItsModel = Queue.TestCase
TestQueueAgainstItsModel.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def test_many_steps_in_random_order_leave_what_the_model_says(redis: Redis) -> None:
    """Hypothesis finds short ways to a fault, and claims seldom. Here every other step is about a claim."""
    chance, machine, claims = Random(1), Queue(), list[Claim]()
    machine.empty_redis()

    def some() -> list[str]:
        return chance.sample(MEMBERS, chance.randint(1, len(MEMBERS)))

    def node() -> str:
        return chance.choice(NODES)

    def keep(claim: Any) -> None:
        if isinstance(claim, Claim):
            claims.append(claim)

    def known() -> Claim:
        return chance.choice(claims[-6:])

    steps: dict[Callable[[], object], int] = {
        lambda: machine.mark(some()): 8,
        lambda: keep(machine.claim(node(), chance.randint(1, 9))): 8,
        lambda: keep(machine.take_over(known(), node())): 4,
        lambda: machine.complete(known()): 4,
        lambda: machine.fail(known(), chance.random() < 0.7): 4,
        lambda: machine.heartbeat(node()): 2,
        lambda: machine.recover(chance.random() < 0.5): 1,
        lambda: machine.ask_for_a_tick(chance.random() < 0.5, chance.random() < 0.5): 3,
        lambda: machine.clock_moves_forward(chance.choice([0.000001, 1, 1, TTL, STALE + 1])): 2,
        lambda: machine.clock_goes_back(chance.choice([0.000001, 1, TTL, STALE + 1])): 1,
        machine.database_goes_down: 1,
        machine.clock_goes_back_in_a_pause: 1,
        machine.pause_is_over: 2,
        machine.tick_on_its_way_is_lost: 2,
    }
    first = [lambda: machine.mark(MEMBERS), lambda: keep(machine.claim("n1", 9))]
    for step in [*first, *chance.choices(list(steps), list(steps.values()), k=2_000)]:
        step()
        machine.all_holds()
    machine.teardown()
