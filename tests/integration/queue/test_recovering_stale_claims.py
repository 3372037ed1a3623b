"""release_stale: which claims go back to the queue, which are counted, and which are left alone."""

import pytest

from harbor_refresh.tasks.pacing import TICK_SENT
from harbor_refresh.tasks.pipeline.recovery import release_stale
from harbor_refresh.tasks.queue.replies import Released
from tests.integration.queue.verb_cases import NOW, SECOND, SIGNS, Case, Faked, flight, played, put
from tests.integration.redis_state import PREFIX, Redis, signs_of_life_come, whole_redis

OLD, FRESH = NOW - 300 * SECOND - 1, NOW - 300 * SECOND + 1
AHEAD, TOO_FAR = NOW + 300 * SECOND - 1, NOW + 300 * SECOND + 1
#: A claim may wait as long as a node may be silent.
WAITED, WAITS_AHEAD = NOW - 10 * SECOND, NOW + 10 * SECOND
RECOVER = {
    "nothing in flight": Case({"queue:v2": {"1:A"}}, {"queue:v2": {"1:A"}}, (Released(), ())),
    "what a silent node worked on goes back, counted": Case(
        flight(f"1:A:dead:{FRESH}", f"2:B:dead:{NOW}") | {"nodes": {"n1": NOW}},
        {
            "queue:v2": {"1:A", "2:B"},
            "attempts": {"1:A": "1", "2:B": "1"},
            "nodes": {"n1": NOW},
        },
        (Released(2, ()), ()),
    ),
    "what a silent node had claimed, and nobody begun, goes back uncounted": Case(
        flight(f"1:A:waiting@dead:{NOW}", f"2:B:waiting@dead:{NOW - 2}", f"3:C:dead:{NOW}")
        | {"nodes": {"n1": NOW}, "attempts": {"2:B": "2"}},
        {
            "queue:v2": {"1:A", "2:B", "3:C"},
            "attempts": {"2:B": "2", "3:C": "1"},
            "nodes": {"n1": NOW},
        },
        (Released(3, ()), ()),
    ),
    "a node is silent whose last sign is older than its ttl, or as far in the future": Case(
        flight(*(f"{number}:A:{node}:{NOW}" for number, node in enumerate(sorted(SIGNS), 1))) | {"nodes": SIGNS},
        flight(f"1:A:b:{NOW}", f"3:A:d:{NOW}")
        | {"queue:v2": {"2:A", "4:A"}, "attempts": {"2:A": "1", "4:A": "1"}, "nodes": SIGNS},
        (Released(2, ()), ()),
    ),
    "an old claim goes back whatever its node says; a live node keeps the others": Case(
        flight(f"1:A:n1:{OLD}", f"2:B:n1:{FRESH}", f"3:C:waiting@n1:{OLD}", f"4:D:waiting@n1:{FRESH}")
        | {"nodes": {"n1": NOW}},
        flight(f"2:B:n1:{FRESH}", f"4:D:waiting@n1:{FRESH}")
        | {"queue:v2": {"1:A", "3:C"}, "attempts": {"1:A": "1"}, "nodes": {"n1": NOW}},
        (Released(2, ()), ()),
    ),
    "a claim from far in the future goes back, too: the clock was put right": Case(
        flight(f"1:A:n1:{TOO_FAR}", f"2:B:n1:{AHEAD}", f"3:C:waiting@n1:{TOO_FAR}", f"4:D:waiting@n1:{AHEAD}")
        | {"nodes": {"n1": NOW}},
        flight(f"2:B:n1:{AHEAD}", f"4:D:waiting@n1:{AHEAD}")
        | {"queue:v2": {"1:A", "3:C"}, "attempts": {"1:A": "1"}, "nodes": {"n1": NOW}},
        (Released(2, ()), ()),
    ),
    "what a node had claimed before it stopped waits for its message, and goes back when it is old": Case(
        flight(f"1:A:waiting@gone:{FRESH}", f"2:B:gone:{FRESH}", f"3:C:waiting@gone:{OLD}")
        | {"nodes": {"n1": NOW}, "left": {"gone": FRESH}},
        flight(f"1:A:waiting@gone:{FRESH}")
        | {
            "queue:v2": {"2:B", "3:C"},
            "attempts": {"2:B": "1"},
            "nodes": {"n1": NOW},
            "left": {"gone": FRESH},
        },
        (Released(2, ()), ()),
    ),
    "who was lost too often is told and is on no list any more": Case(
        flight(f"1:A:dead:{FRESH}") | {"attempts": {"1:A": "2"}},
        {},
        (Released(0, ("1:A",)), ()),
    ),
    "who only waited is never told, however often he failed before": Case(
        flight(f"1:A:waiting@dead:{NOW}") | {"attempts": {"1:A": "2"}},
        {"queue:v2": {"1:A"}, "attempts": {"1:A": "2"}},
        (Released(1, ()), ()),
    ),
}

#: If nothing waits with the broker.
IDLE = {
    "a claim that waits longer than a node may be silent goes back uncounted, though its node lives": Case(
        flight(f"1:A:waiting@n1:{WAITED - 1}", f"2:B:waiting@n1:{WAITED}", f"3:C:n1:{WAITED - 1}")
        | {"nodes": {"n1": NOW}, "attempts": {"1:A": "2"}},
        flight(f"2:B:waiting@n1:{WAITED}", f"3:C:n1:{WAITED - 1}")
        | {"queue:v2": {"1:A"}, "attempts": {"1:A": "2"}, "nodes": {"n1": NOW}},
        (Released(1, ()), ()),
    ),
    "so does one that waits since the future": Case(
        flight(f"1:A:waiting@n1:{WAITS_AHEAD + 1}", f"2:B:waiting@n1:{WAITS_AHEAD}", f"3:C:n1:{WAITS_AHEAD + 1}")
        | {"nodes": {"n1": NOW}},
        flight(f"2:B:waiting@n1:{WAITS_AHEAD}", f"3:C:n1:{WAITS_AHEAD + 1}")
        | {"queue:v2": {"1:A"}, "nodes": {"n1": NOW}},
        (Released(1, ()), ()),
    ),
}


@pytest.mark.parametrize("name", IDLE)
def test_recover_stale_with_an_empty_broker(name: str, redis: Redis, faked: Faked) -> None:
    case = IDLE[name]
    put(redis, case.before)
    assert release_stale(faked[0]) == (Released(), ())
    assert whole_redis(redis) == case.before
    assert release_stale(faked[0], idle=True) == case.result
    assert whole_redis(redis) == case.after


@pytest.mark.parametrize("name", RECOVER)
def test_recover_stale(name: str, redis: Redis, faked: Faked) -> None:
    case = RECOVER[name]
    assert played(redis, case, lambda: release_stale(faked[0])) == case.result
    before = whole_redis(redis)
    assert release_stale(faked[0]) == (Released(), ())
    assert whole_redis(redis) == before


@pytest.mark.parametrize(
    "raw",
    [b"x", b"1:A", b"1:A:n1", b"1:A:n1:x", b"1:A:B:n1:7", b":A:n1:7", b"1::n1:7", b"\xff", b"1:A:n1:007"],
)
def test_a_token_that_cannot_be_read_is_dropped_and_told(raw: bytes, redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    put(redis, flight(f"1:A:n1:{NOW}") | {"nodes": {"n1": NOW}})
    before = whole_redis(redis)
    redis.sadd(PREFIX + "processing", raw)
    assert release_stale(queue) == (Released(), (raw,))
    assert whole_redis(redis) == before


@pytest.mark.parametrize("holders", [("dead",), ("waiting@dead",), ("dead", "waiting@dead")])
def test_thousands_of_stale_claims_go_back_in_pages(holders: tuple[str, ...], redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    holder_of = {f"{number}:A": holders[number % len(holders)] for number in range(1, 3501)}
    put(redis, flight(*(f"{member}:{holder}:7" for member, holder in holder_of.items())))
    assert release_stale(queue) == (Released(3500, ()), ())
    counted = {member: "1" for member, holder in holder_of.items() if holder == "dead"}
    assert whole_redis(redis) == {"queue:v2": set(holder_of)} | ({"attempts": counted} if counted else {})


@pytest.mark.parametrize("node", ["silent", "alive"])
def test_a_claim_that_nobody_ever_takes_is_never_counted(node: str, redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    queue.mark(["1:A", "2:B"])
    for _ in range(10):
        assert len(queue.claim("me", 10).claim) == 2
        clock.move(11)
        if node == "alive":
            queue.heartbeat("me")
        assert release_stale(queue, idle=node == "alive") == (Released(2, ()), ())
    assert whole_redis(redis) == {
        "queue:v2": {"1:A", "2:B"},
        "nodes": {"me": clock.now - (11 * SECOND if node == "silent" else 0)},
        "stamp": str(clock.now - 11 * SECOND),
        "cursor": "0",
        "wake": TICK_SENT,
    }


def test_what_a_restarted_redis_remembers_of_a_live_node_goes_back_when_that_had_time_to_complete_it(
    redis: Redis, faked: Faked
) -> None:
    """Redis came back from a snapshot in which a claim is in flight that its node has completed since."""
    queue, clock = faked
    before, after = NOW - 20 * SECOND + 1, NOW - 5 * SECOND + 1
    put(redis, {"nodes": {"n1": NOW}} | flight(f"1:A:n1:{before}", f"2:B:n1:{after}"))
    signs_of_life_come(redis, since=NOW - 10 * SECOND, heard=NOW)
    assert release_stale(queue) == (Released(), ())
    clock.move(0.000001)
    assert release_stale(queue) == (Released(1, ()), ())
    state = {"queue:v2": {"1:A"}, "nodes": {"n1": NOW}} | flight(f"2:B:n1:{after}")
    assert whole_redis(redis) == state, "no attempt is counted"


def test_while_signs_of_life_may_be_missing_claims_go_back_and_no_attempt_is_counted(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    put(redis, flight(f"1:A:n1:{NOW - 1}"))
    redis.delete(PREFIX + "presence")
    assert release_stale(queue) == (Released(1, ()), ())
    assert whole_redis(redis) == {"queue:v2": {"1:A"}}
