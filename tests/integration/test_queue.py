"""The verbs of the queue as tables: all that Redis holds before, what is done, all that it holds after."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from executions.errors import QueueUnavailable
from executions.queue import SMALL, Claim, ExecutionQueue, Token
from executions.queue import queue as queue_module
from executions.queue.queue import Completed, GivenBack, Marked
from tests.integration.state import (
    Clock,
    Redis,
    absent_redis,
    queue_with_clock,
    sets_are_hash_tables,
    wait_until,
    whole_redis,
)

NOW = 1_000_000_000_000
SECOND = 1_000_000
PREFIX = "cache:execution:refresh:"


@dataclass
class Case:
    """`result` is what the verb returned."""

    before: dict[str, Any]
    after: dict[str, Any]
    result: Any = None
    claim: Claim = field(default_factory=lambda: Claim("n1", "7", ("1:A", "2:B")))
    counted: bool = True


def put(redis: Redis, state: dict[str, Any]) -> None:
    for name, value in state.items():
        key = PREFIX + name
        match value:
            case set():
                redis.sadd(key, *value)
            case dict() if name == "nodes":
                redis.zadd(key, value)
            case dict():
                redis.hset(key, mapping=value)
            case _:
                redis.set(key, value)


def flight(*tokens: str) -> dict[str, Any]:
    return {"processing": set(tokens)} if tokens else {}


@pytest.fixture
def faked(redis: Redis) -> tuple[ExecutionQueue, Clock]:
    """Without heat, which has tests of its own (test_heat.py)."""
    return queue_with_clock(
        redis, fanout=2, depth=2, chunk=1000, max_attempts=3, node_ttl=10.0, stale=300.0, rest=0.0
    )


Faked = tuple[ExecutionQueue, Clock]


def scans(redis: Redis) -> int:
    info: Any = redis.info("commandstats")
    return int(info.get("cmdstat_sscan", {"calls": 0})["calls"])


def played(redis: Redis, case: Case, verb: Any) -> Any:
    put(redis, case.before)
    result = verb()
    assert whole_redis(redis) == case.after
    return result


# add


def waiting(count: int) -> set[str]:
    return {f"{number}:C" for number in range(1, count + 1)}


ADD = {
    "the first mark on an empty queue asks for a tick": Case(
        {}, {"queue:v2": {"1:A", "2:B"}, "wake": "1"}, Marked(2, True)
    ),
    "a mark on a short queue asks, too: those that wait there may have to rest": Case(
        {"queue:v2": {"3:C"}}, {"queue:v2": {"1:A", "2:B", "3:C"}, "wake": "1"}, Marked(2, True)
    ),
    "a queue is short with 16 members": Case(
        {"queue:v2": waiting(SMALL)},
        {"queue:v2": waiting(SMALL) | {"1:A", "2:B"}, "wake": "1"},
        Marked(2, True),
    ),
    "a mark on a long queue asks for nothing while somebody works": Case(
        {"queue:v2": waiting(SMALL + 1)} | flight("9:Z:n1:7"),
        {"queue:v2": waiting(SMALL + 1) | {"1:A", "2:B"}} | flight("9:Z:n1:7"),
        Marked(2, False),
    ),
    "and asks if nobody does": Case(
        {"queue:v2": waiting(SMALL + 1)},
        {"queue:v2": waiting(SMALL + 1) | {"1:A", "2:B"}, "wake": "1"},
        Marked(2, True),
    ),
    "marking twice is marking once": Case(
        {"queue:v2": {"1:A", "2:B"}}, {"queue:v2": {"1:A", "2:B"}}, Marked(0, False)
    ),
    "while a tick is on its way nobody asks for another, and it is noted that there was a mark": Case(
        {"wake": "1"}, {"queue:v2": {"1:A", "2:B"}, "wake": "2"}, Marked(2, False)
    ),
    "which is noted once": Case({"wake": "2"}, {"queue:v2": {"1:A", "2:B"}, "wake": "2"}, Marked(2, False)),
    "to be marked again while one waits is not noted": Case(
        {"queue:v2": {"1:A", "2:B"}, "wake": "1"}, {"queue:v2": {"1:A", "2:B"}, "wake": "1"}, Marked(0, False)
    ),
    "nor is a mark on a long queue": Case(
        {"queue:v2": waiting(SMALL + 1), "wake": "1"} | flight("9:Z:n1:7"),
        {"queue:v2": waiting(SMALL + 1) | {"1:A", "2:B"}, "wake": "1"} | flight("9:Z:n1:7"),
        Marked(2, False),
    ),
    "what is in flight is marked again": Case(
        flight("1:A:n1:7"),
        flight("1:A:n1:7") | {"queue:v2": {"1:A", "2:B"}, "wake": "1"},
        Marked(2, True),
    ),
}


@pytest.mark.parametrize("name", ADD)
def test_add(name: str, redis: Redis, faked: Faked) -> None:
    case = ADD[name]
    assert played(redis, case, lambda: faked[0].add(["1:A", "2:B"])) == case.result


def test_a_tick_that_was_asked_for_and_never_came_is_taken_for_lost_after_seconds(
    redis: Redis, faked: Faked
) -> None:
    faked[0].add(["1:A"])
    assert 0 < redis.pttl(PREFIX + "wake") <= 2000
    redis.pexpire(PREFIX + "wake", 500)
    faked[0].add(["2:A"])
    assert whole_redis(redis)["wake"] == "2"
    assert 0 < redis.pttl(PREFIX + "wake") <= 500, "marks must not keep a lost tick alive"


def test_one_that_is_marked_while_it_waits_on_a_short_queue_is_counted(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    queue.add(waiting(SMALL - 1) | {"1:A"})
    for _ in range(3):
        assert queue.add(["1:A"]) == Marked(0, False)
    queue.add(["1:C"])
    queue.add(["1:A", "1:C"])
    assert whole_redis(redis)["marks"] == {"1:A": "3", "1:C": "1"}
    assert 0 < redis.pttl(PREFIX + "marks") <= 10_000
    queue.add(["2:A"])
    queue.add(["1:A"])
    assert whole_redis(redis)["marks"] == {"1:A": "3", "1:C": "1"}, "in a long queue nobody is counted"


def test_no_more_than_a_thousand_are_counted(redis: Redis, faked: Faked) -> None:
    """What a long queue's claims leave behind does not pile up while marks keep the key alive."""
    queue, _ = faked
    largest = 0
    for number in range(1, 2501):
        for _ in range(2):
            queue.add([f"{number}:A"])
        redis.delete(PREFIX + "queue:v2")
        largest = max(largest, redis.hlen(PREFIX + "marks"))
    assert largest == 1000


def test_ten_thousand_marks_in_one_call_are_all_there(redis: Redis, faked: Faked) -> None:
    marked = faked[0].add(f"{number}:A" for number in range(1, 10_001))
    assert marked == Marked(10_000, True)
    assert redis.scard(PREFIX + "queue:v2") == 10_000


# claim_batch


def claimed(*members: str, **seen: Any) -> dict[str, Any]:
    """What a batch says, with the defaults of an otherwise empty queue."""
    attempts = seen.pop("attempts", {})
    stamp = seen.pop("stamp", str(NOW) if members else "0")
    return {"members": set(members), "stamp": stamp, "attempts": attempts, **seen}


def token(member: str, stamp: int = NOW) -> str:
    return f"{member}:me:{stamp}"


#: Whoever claims or takes over gives a sign of life with it.
ALIVE = {"nodes": {"me": NOW}}


#: The two on the edges live, the two beyond them do not.
SIGNS = {
    "b": NOW - 10 * SECOND,
    "c": NOW - 10 * SECOND - 1,
    "d": NOW + 10 * SECOND,
    "e": NOW + 10 * SECOND + 1,
}
#: To be read with ALIVE in each `after`.
CLAIM = {
    "nothing waits": Case({}, {}, claimed(backlog=0, live_nodes=1)),
    "who finds nothing leaves no wake, and the next mark sends its tick itself": Case(
        {"wake": "2"}, {}, claimed(backlog=0, live_nodes=1)
    ),
    "marks until now are seen to: the wake is as if a tick had just come": Case(
        {"queue:v2": {"1:A"}, "wake": "2"},
        flight(token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
    "all that waits is taken, under the node and a stamp": Case(
        {"queue:v2": {"1:A", "2:B"}, "wake": "1"},
        flight(token("1:A"), token("2:B")) | {"stamp": str(NOW)},
        claimed("1:A", "2:B", backlog=2, live_nodes=1),
    ),
    "a stamp is not given twice when the clock stands still": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW)},
        flight(token("1:A", NOW + 2)) | {"stamp": str(NOW + 2)},
        claimed("1:A", stamp=str(NOW + 2), backlog=1, live_nodes=1),
    ),
    "a stamp is not given twice when the clock went back": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW + 999)},
        flight(token("1:A", NOW + 1000)) | {"stamp": str(NOW + 1000)},
        claimed("1:A", stamp=str(NOW + 1000), backlog=1, live_nodes=1),
    ),
    "a claim waits, so its stamp is even: the last one was odd": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW + 1)},
        flight(token("1:A", NOW + 2)) | {"stamp": str(NOW + 2)},
        claimed("1:A", stamp=str(NOW + 2), backlog=1, live_nodes=1),
    ),
    "a stamp of up to a minute ahead is believed": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW + 60 * SECOND)},
        flight(token("1:A", NOW + 60 * SECOND + 2)) | {"stamp": str(NOW + 60 * SECOND + 2)},
        claimed("1:A", stamp=str(NOW + 60 * SECOND + 2), backlog=1, live_nodes=1),
    ),
    "a stamp of more than a minute ahead is forgotten: the clock was put right": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW + 60 * SECOND + 1)},
        flight(token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
    "what is in flight and was marked again is claimed again, beside the other claim": Case(
        {"queue:v2": {"1:A", "2:B"}} | flight("1:A:n1:7"),
        flight("1:A:n1:7", token("1:A"), token("2:B")) | {"stamp": str(NOW)},
        claimed("1:A", "2:B", backlog=2, live_nodes=1),
    ),
    "what others have in flight is left to them": Case(
        {"queue:v2": {"1:A"}} | flight("9:Z:n1:7", "1:A:n1:7"),
        flight("9:Z:n1:7", "1:A:n1:7", token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
    "how often each failed before is told": Case(
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "2", "9:Z": "1"}},
        flight(token("1:A"), token("2:B")) | {"stamp": str(NOW), "attempts": {"1:A": "2", "9:Z": "1"}},
        claimed("1:A", "2:B", attempts={"1:A": 2}, backlog=2, live_nodes=1),
    ),
    "while the database is away nobody claims": Case(
        {"queue:v2": {"1:A"}, "pause": "1", "wake": "1"},
        {"queue:v2": {"1:A"}, "pause": "1"},
        claimed(backlog=1, live_nodes=1),
    ),
    "with no room left nothing is taken": Case(
        {"queue:v2": {"1:A"}} | flight("5:A:n1:7", "6:A:n1:7", "7:A:n1:7", "8:A:n1:7"),
        {"queue:v2": {"1:A"}} | flight("5:A:n1:7", "6:A:n1:7", "7:A:n1:7", "8:A:n1:7"),
        claimed(backlog=1, live_nodes=1),
    ),
    "each live node makes room, a silent one and one from the future do not": Case(
        {"queue:v2": {"1:A"}, "nodes": SIGNS} | flight(*(f"{number}:A:n1:7" for number in range(11, 22))),
        {"nodes": SIGNS | {"me": NOW}, "stamp": str(NOW)}
        | flight(*(f"{number}:A:n1:7" for number in range(11, 22)), token("1:A")),
        claimed("1:A", backlog=1, live_nodes=3),
    ),
    "and no more room than that": Case(
        {"queue:v2": {"1:A"}, "nodes": SIGNS} | flight(*(f"{number}:A:n1:7" for number in range(11, 23))),
        {"queue:v2": {"1:A"}, "nodes": SIGNS | {"me": NOW}}
        | flight(*(f"{number}:A:n1:7" for number in range(11, 23))),
        claimed(backlog=1, live_nodes=3),
    ),
    "who was silent himself lives again with his claim": Case(
        {"queue:v2": {"1:A"}, "nodes": {"me": NOW - 11 * SECOND}},
        flight(token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
}


@pytest.mark.parametrize("name", CLAIM)
def test_claim_batch(name: str, redis: Redis, faked: Faked) -> None:
    case = CLAIM[name]
    taken = {"cursor": "0", "wake": "1"} if case.result["members"] else {}
    case = replace(case, after=ALIVE | taken | case.after)
    batch = played(redis, case, lambda: faked[0].claim_batch("me", 100))
    assert batch.unreadable == ()
    assert case.result == {
        "members": set(batch.claim.members),
        "stamp": batch.claim.stamp,
        "attempts": batch.attempts,
        "backlog": batch.backlog,
        "live_nodes": batch.live_nodes,
    }


def test_a_claim_takes_no_more_than_was_asked_and_no_more_than_there_is_room(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    queue.add(f"{number}:A" for number in range(1, 11))
    assert [len(queue.claim_batch("me", count).claim) for count in (1, 1, 100, 1, 100)] == [1, 1, 2, 0, 0]
    assert redis.scard(PREFIX + "queue:v2") == 6
    queue.sign_of_life("a")
    assert len(queue.claim_batch("me", 100).claim) == 4
    assert redis.scard(PREFIX + "queue:v2") == 2


@pytest.mark.parametrize("size", [{"fanout": 20, "chunk": 1000}, {"fanout": None, "chunk": 20}])
def test_a_claim_takes_no_scraps_while_others_work_and_the_last_one_finds_room(
    size: dict[str, Any], redis: Redis
) -> None:
    """Room for a part of a chunk is left for the next, who finds more: unless it is all that waits."""
    queue, _ = queue_with_clock(redis, depth=2, rest=0.0, **size)
    queue.add(f"{number}:A" for number in range(1, 51))
    first = queue.claim_batch("me", 21)
    assert (len(first.claim), first.more) == (21, False)
    for count in (1, 19, 20, 100):
        assert queue.claim_batch("me", count).claim.members == ()
    queue.mark_complete(first.claim.only(first.claim.members[:1]))
    second = queue.claim_batch("me", 3)
    assert (len(second.claim), second.more) == (3, False)
    queue.mark_complete(first.claim)
    third = queue.claim_batch("me", 17)
    assert (len(third.claim), third.backlog, third.more) == (17, 26, True)
    assert len(queue.claim_batch("me", 100).claim) == 9, "all that waits is no scrap"
    assert "queue:v2" not in whole_redis(redis)


def test_the_wake_stays_while_a_long_queue_is_shared_out(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, fanout=100, depth=10, rest=0.0)
    queue.add(waiting(SMALL + 2))
    for state in ("1", "2"):
        redis.set(PREFIX + "wake", state)
        assert len(queue.claim_batch("me", 1).claim) == 1
        assert whole_redis(redis)["wake"] == state
    assert not redis.exists(PREFIX + "marks")
    queue.claim_batch("me", 1)
    assert not redis.exists(PREFIX + "wake"), "of a short one some are left: who completes may wake the next"
    queue.claim_batch("me", 100)
    assert whole_redis(redis)["wake"] == "1"
    queue.forget_wake()
    assert not redis.exists(PREFIX + "wake")


def test_whoever_claims_makes_room_for_himself_though_others_have_their_hands_full(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    queue.add(f"{number}:A" for number in range(1, 11))
    assert [len(queue.claim_batch(node, 100).claim) for node in ("n1", "n1", "n2", "n1", "n2")] == [4, 0, 4, 0, 0]
    assert whole_redis(redis)["nodes"] == {"n1": NOW, "n2": NOW}


def test_all_pages_of_a_claim_wait_under_one_even_stamp_and_are_worked_under_one_odd_one(redis: Redis) -> None:
    queue, clock = queue_with_clock(redis, fanout=5000, depth=1)
    clock.move(0.000001)
    names = {f"{number}:A" for number in range(1, 4001)}
    queue.add(names)
    claim = queue.claim_batch("me", 5000).claim
    assert (claim.stamp, set(claim.members)) == (str(NOW + 2), names)
    assert whole_redis(redis)["processing"] == {token(name, NOW + 2) for name in names}
    clock.move(0.000003)
    mine = queue.take_over(claim, "you")
    assert (mine.stamp, set(mine.members)) == (str(NOW + 5), names)
    assert whole_redis(redis)["processing"] == {f"{name}:you:{NOW + 5}" for name in names}
    assert {one.is_worked_on for one in queue.claims() if isinstance(one, Token)} == {True}


MALFORMED = [
    b"x",
    b"1",
    b"1:",
    b":A",
    b"",
    b"1:A:B",
    b"-1:A",
    b"0:A",
    b"1.5:A",
    b"9223372036854775808:A",
    b"99999999999999999999999:A",
    b"\xff\xfe",
    b"1:\xff",
    b"1:A\x00",
    "\u0661:A".encode(),
    b"1:" + b"V" * 65,
    b"7:A\n8:A",
]


@pytest.mark.parametrize("raw", MALFORMED)
def test_a_member_that_cannot_be_read_is_dropped_told_and_stops_nobody(
    raw: bytes, redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    redis.sadd(PREFIX + "queue:v2", raw, "1:A", "2:B b")
    redis.hset(PREFIX + "attempts", mapping={raw: 2, "1:A": 1})
    batch = queue.claim_batch("me", 100)
    assert set(batch.claim.members) == {"1:A", "2:B b"}
    assert batch.unreadable == (raw,)
    assert batch.attempts == {"1:A": 1}
    assert whole_redis(redis) == ALIVE | flight(token("1:A"), token("2:B b")) | {
        "stamp": str(NOW),
        "cursor": "0",
        "wake": "1",
        "attempts": {"1:A": "1"},
    }


def test_nothing_but_members_that_cannot_be_read_leaves_nothing(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    redis.sadd(PREFIX + "queue:v2", b"x", b"\xff")
    batch = queue.claim_batch("me", 100)
    assert (batch.claim.members, set(batch.unreadable)) == ((), {b"x", b"\xff"})
    assert whole_redis(redis) == ALIVE | {"stamp": str(NOW), "cursor": "0", "wake": "1"}


# take_over


TAKE_OVER = {
    "a live claim gets the node that works it, and a new stamp, an odd one": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7"),
        flight(token("1:A", NOW + 1), token("2:B", NOW + 1), "3:C:n1:7") | {"stamp": str(NOW + 1)} | ALIVE,
        Claim("me", str(NOW + 1), ("1:A", "2:B")),
    ),
    "only the part that is live": Case(
        flight("2:B:n1:7", "1:A:n2:8"),
        flight(token("2:B", NOW + 1), "1:A:n2:8") | {"stamp": str(NOW + 1)} | ALIVE,
        Claim("me", str(NOW + 1), ("2:B",)),
    ),
    "a stamp is not given twice when the clock stands still": Case(
        flight("2:B:n1:7") | {"stamp": str(NOW + 1)},
        flight(token("2:B", NOW + 3)) | {"stamp": str(NOW + 3)} | ALIVE,
        Claim("me", str(NOW + 3), ("2:B",)),
    ),
    "a stamp of up to a minute ahead is believed": Case(
        flight("2:B:n1:7") | {"stamp": str(NOW + 60 * SECOND)},
        flight(token("2:B", NOW + 60 * SECOND + 1)) | {"stamp": str(NOW + 60 * SECOND + 1)} | ALIVE,
        Claim("me", str(NOW + 60 * SECOND + 1), ("2:B",)),
    ),
    "a stamp of more than a minute ahead is forgotten: the clock was put right": Case(
        flight("2:B:n1:7") | {"stamp": str(NOW + 60 * SECOND + 1)},
        flight(token("2:B", NOW + 1)) | {"stamp": str(NOW + 1)} | ALIVE,
        Claim("me", str(NOW + 1), ("2:B",)),
    ),
    "a claim that was recovered gives nothing": Case(
        {"queue:v2": {"1:A", "2:B"}}, {"queue:v2": {"1:A", "2:B"}}, Claim("me", "0", ())
    ),
    "a claim that somebody else has now gives nothing": Case(
        flight("1:A:n1:8", "2:B:n3:7"), flight("1:A:n1:8", "2:B:n3:7"), Claim("me", "0", ())
    ),
}


@pytest.mark.parametrize("name", TAKE_OVER)
def test_take_over(name: str, redis: Redis, faked: Faked) -> None:
    case = TAKE_OVER[name]
    assert played(redis, case, lambda: faked[0].take_over(case.claim, "me")) == case.result


def test_a_message_that_is_delivered_twice_is_worked_once_even_by_the_same_node(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    queue.add(["1:A", "2:B"])
    claim = queue.claim_batch("me", 10).claim
    assert len(queue.take_over(claim, "me")) == 2
    before = whole_redis(redis)
    assert len(queue.take_over(claim, "me")) == 0
    assert whole_redis(redis) == before


# mark_complete


COMPLETE = {
    "tokens and attempts are gone": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7") | {"attempts": {"1:A": "1", "3:C": "2"}},
        flight("3:C:n1:7") | {"attempts": {"3:C": "2"}},
        Completed(2, 0, False),
    ),
    "what was marked meanwhile still waits, and is worth a tick": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"queue:v2": {"1:A"}},
        {"queue:v2": {"1:A"}, "wake": "1"},
        Completed(2, 0, True),
    ),
    "no tick while one is on its way": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"queue:v2": {"1:A"}, "wake": "1"},
        {"queue:v2": {"1:A"}, "wake": "1"},
        Completed(2, 0, False),
    ),
    "no tick while the database is away": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"queue:v2": {"1:A"}, "pause": "1"},
        {"queue:v2": {"1:A"}, "pause": "1"},
        Completed(2, 0, False),
    ),
    "no tick while the workers have their hands full": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7", "4:C:n1:7", "5:C:n1:7") | {"queue:v2": {"1:A"}},
        flight("3:C:n1:7", "4:C:n1:7", "5:C:n1:7") | {"queue:v2": {"1:A"}},
        Completed(2, 0, False),
    ),
    "a node from the future has no hands": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "e": NOW + 10 * SECOND + 1}},
        flight("3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "e": NOW + 10 * SECOND + 1}},
        Completed(2, 0, False),
    ),
    "the hands of a node on the edge count": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "d": NOW + 10 * SECOND}},
        flight("3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "d": NOW + 10 * SECOND}, "wake": "1"},
        Completed(2, 0, True),
    ),
    "a claim that was recovered changes nothing and says so": Case(
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "1"}, "wake": "1"},
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "1"}, "wake": "1"},
        Completed(0, 2, False),
    ),
    "a claim that was recovered and claimed again belongs to the other": Case(
        flight("1:A:n2:8", "2:B:n1:7") | {"attempts": {"1:A": "1"}},
        flight("1:A:n2:8") | {"attempts": {"1:A": "1"}},
        Completed(1, 1, False),
    ),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_mark_complete(name: str, redis: Redis, faked: Faked) -> None:
    case = COMPLETE[name]
    assert played(redis, case, lambda: faked[0].mark_complete(case.claim)) == case.result


# mark_failed


FAILED = {
    "a failure is counted": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"attempts": {"1:A": "1"}},
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "2", "2:B": "1"}},
        GivenBack(2, ()),
    ),
    "a failure that is nobody's is not counted": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"attempts": {"1:A": "2"}},
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "2"}},
        GivenBack(2, ()),
        counted=False,
    ),
    "who failed too often is on no list any more": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"attempts": {"1:A": "2", "9:Z": "2"}},
        {"queue:v2": {"2:B"}, "attempts": {"2:B": "1", "9:Z": "2"}},
        GivenBack(1, ("1:A",)),
    ),
    "a claim that was recovered changes nothing and counts nothing": Case(
        {"queue:v2": {"1:A"}} | flight("2:B:n2:8"),
        {"queue:v2": {"1:A"}} | flight("2:B:n2:8"),
        GivenBack(0, ()),
    ),
    "what was marked meanwhile is there once": Case(
        {"queue:v2": {"1:A"}} | flight("1:A:n1:7"),
        {"queue:v2": {"1:A"}, "attempts": {"1:A": "1"}},
        GivenBack(1, ()),
    ),
}


@pytest.mark.parametrize("name", FAILED)
def test_mark_failed(name: str, redis: Redis, faked: Faked) -> None:
    case = FAILED[name]
    verb = lambda: faked[0].mark_failed(case.claim, counted=case.counted)  # noqa: E731
    assert played(redis, case, verb) == case.result


# recover_stale


#: Odd stamps: somebody had begun to work. The even ones beside them waited.
OLD, FRESH = NOW - 300 * SECOND - 1, NOW - 300 * SECOND + 1
AHEAD, TOO_FAR = NOW + 300 * SECOND - 1, NOW + 300 * SECOND + 1
#: A claim may wait as long as a node may be silent.
WAITED, WAITS_AHEAD = NOW - 10 * SECOND, NOW + 10 * SECOND
RECOVER = {
    "nothing in flight": Case({"queue:v2": {"1:A"}}, {"queue:v2": {"1:A"}}, (GivenBack(), ())),
    "what a silent node worked on goes back, counted": Case(
        flight(f"1:A:dead:{FRESH}", f"2:B:dead:{NOW + 1}") | {"nodes": {"n1": NOW}},
        {
            "queue:v2": {"1:A", "2:B"},
            "attempts": {"1:A": "1", "2:B": "1"},
            "nodes": {"n1": NOW},
        },
        (GivenBack(2, ()), ()),
    ),
    "what a silent node had claimed, and nobody begun, goes back uncounted": Case(
        flight(f"1:A:dead:{NOW}", f"2:B:dead:{NOW - 2}", f"3:C:dead:{NOW + 1}")
        | {"nodes": {"n1": NOW}, "attempts": {"2:B": "2"}},
        {
            "queue:v2": {"1:A", "2:B", "3:C"},
            "attempts": {"2:B": "2", "3:C": "1"},
            "nodes": {"n1": NOW},
        },
        (GivenBack(3, ()), ()),
    ),
    "a node is silent whose last sign is older than its ttl, or as far in the future": Case(
        flight(*(f"{number}:A:{node}:{NOW + 1}" for number, node in enumerate(sorted(SIGNS), 1)))
        | {"nodes": SIGNS},
        flight(f"1:A:b:{NOW + 1}", f"3:A:d:{NOW + 1}")
        | {"queue:v2": {"2:A", "4:A"}, "attempts": {"2:A": "1", "4:A": "1"}, "nodes": SIGNS},
        (GivenBack(2, ()), ()),
    ),
    "an old claim goes back whatever its node says; a live node keeps the others": Case(
        flight(f"1:A:n1:{OLD}", f"2:B:n1:{FRESH}", f"3:C:n1:{OLD - 1}", f"4:D:n1:{FRESH + 2}")
        | {"nodes": {"n1": NOW}},
        flight(f"2:B:n1:{FRESH}", f"4:D:n1:{FRESH + 2}")
        | {"queue:v2": {"1:A", "3:C"}, "attempts": {"1:A": "1"}, "nodes": {"n1": NOW}},
        (GivenBack(2, ()), ()),
    ),
    "a claim from far in the future goes back, too: the clock was put right": Case(
        flight(f"1:A:n1:{TOO_FAR}", f"2:B:n1:{AHEAD}", f"3:C:n1:{TOO_FAR + 1}", f"4:D:n1:{AHEAD - 2}")
        | {"nodes": {"n1": NOW}},
        flight(f"2:B:n1:{AHEAD}", f"4:D:n1:{AHEAD - 2}")
        | {"queue:v2": {"1:A", "3:C"}, "attempts": {"1:A": "1"}, "nodes": {"n1": NOW}},
        (GivenBack(2, ()), ()),
    ),
    "who was lost too often is told and is on no list any more": Case(
        flight(f"1:A:dead:{FRESH}") | {"attempts": {"1:A": "2"}},
        {},
        (GivenBack(0, ("1:A",)), ()),
    ),
    "who only waited is never told, however often he failed before": Case(
        flight(f"1:A:dead:{NOW}") | {"attempts": {"1:A": "2"}},
        {"queue:v2": {"1:A"}, "attempts": {"1:A": "2"}},
        (GivenBack(1, ()), ()),
    ),
}


#: If nothing waits with the broker.
IDLE = {
    "a claim that waits longer than a node may be silent goes back uncounted, though its node lives": Case(
        flight(f"1:A:n1:{WAITED - 2}", f"2:B:n1:{WAITED}", f"3:C:n1:{WAITED - 1}")
        | {"nodes": {"n1": NOW}, "attempts": {"1:A": "2"}},
        flight(f"2:B:n1:{WAITED}", f"3:C:n1:{WAITED - 1}")
        | {"queue:v2": {"1:A"}, "attempts": {"1:A": "2"}, "nodes": {"n1": NOW}},
        (GivenBack(1, ()), ()),
    ),
    "so does one that waits since the future": Case(
        flight(f"1:A:n1:{WAITS_AHEAD + 2}", f"2:B:n1:{WAITS_AHEAD}", f"3:C:n1:{WAITS_AHEAD + 1}")
        | {"nodes": {"n1": NOW}},
        flight(f"2:B:n1:{WAITS_AHEAD}", f"3:C:n1:{WAITS_AHEAD + 1}") | {"queue:v2": {"1:A"}, "nodes": {"n1": NOW}},
        (GivenBack(1, ()), ()),
    ),
}


@pytest.mark.parametrize("name", IDLE)
def test_recover_stale_with_an_empty_broker(name: str, redis: Redis, faked: Faked) -> None:
    case = IDLE[name]
    put(redis, case.before)
    assert faked[0].recover_stale() == (GivenBack(), ())
    assert whole_redis(redis) == case.before
    assert faked[0].recover_stale(idle=True) == case.result
    assert whole_redis(redis) == case.after


@pytest.mark.parametrize("name", RECOVER)
def test_recover_stale(name: str, redis: Redis, faked: Faked) -> None:
    case = RECOVER[name]
    assert played(redis, case, faked[0].recover_stale) == case.result
    before = whole_redis(redis)
    assert faked[0].recover_stale() == (GivenBack(), ())
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
    assert queue.recover_stale() == (GivenBack(), (raw,))
    assert whole_redis(redis) == before


@pytest.mark.parametrize("stamps", [(7,), (8,), (7, 8)])
def test_thousands_of_stale_claims_go_back_in_pages(stamps: tuple[int, ...], redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    stamp_of = {f"{number}:A": stamps[number % len(stamps)] for number in range(1, 3501)}
    put(redis, flight(*(f"{member}:dead:{stamp}" for member, stamp in stamp_of.items())))
    assert queue.recover_stale() == (GivenBack(3500, ()), ())
    counted = {member: "1" for member, stamp in stamp_of.items() if stamp == 7}
    assert whole_redis(redis) == {"queue:v2": set(stamp_of)} | ({"attempts": counted} if counted else {})


@pytest.mark.parametrize("node", ["silent", "alive"])
def test_a_claim_that_nobody_ever_takes_is_never_counted(node: str, redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    queue.add(["1:A", "2:B"])
    for _ in range(10):
        assert len(queue.claim_batch("me", 10).claim) == 2
        clock.move(11)
        if node == "alive":
            queue.sign_of_life("me")
        assert queue.recover_stale(idle=node == "alive") == (GivenBack(2, ()), ())
    assert whole_redis(redis) == {
        "queue:v2": {"1:A", "2:B"},
        "nodes": {"me": clock.now - (11 * SECOND if node == "silent" else 0)},
        "stamp": str(clock.now - 11 * SECOND),
        "cursor": "0",
        "wake": "1",
    }


def test_recovery_looks_who_is_alive_once_and_again_only_for_a_node_it_does_not_know(
    redis: Redis, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, _ = faked
    monkeypatch.setattr(queue_module, "LOOK_PAGE", 20)
    put(redis, {"nodes": {"n1": NOW}} | flight(*(f"{number}:A:n1:{NOW + 1}" for number in range(1, 1001))))
    look, looks = queue.stats, list[Any]()

    def looked() -> Any:
        looks.append(look())
        return looks[-1]

    queue.stats = looked  # type: ignore[method-assign]
    with sets_are_hash_tables(redis):
        before = scans(redis)
        assert queue.recover_stale() == (GivenBack(), ())
        assert scans(redis) - before > 10
        assert len(looks) == 1
        redis.sadd(PREFIX + "processing", f"1:A:dead:{NOW}")
        assert queue.recover_stale() == (GivenBack(1, ()), ())
    assert len(looks) == 3


def test_a_node_that_took_a_claim_over_after_recovery_looked_who_is_alive_keeps_it(
    redis: Redis, faked: Faked
) -> None:
    """A worker that starts greets with a recovery, just when other new nodes take their first claims."""
    queue, _ = faked
    queue.add(["1:A"])
    claim = queue.claim_batch("old", 10).claim
    look = queue.stats

    def look_and_be_overtaken() -> Any:
        seen = look()
        queue.take_over(claim, "new")
        return seen

    queue.stats = look_and_be_overtaken  # type: ignore[method-assign]
    assert queue.recover_stale() == (GivenBack(), ())
    assert whole_redis(redis)["processing"] == {f"1:A:new:{NOW + 1}"}
    assert "attempts" not in whole_redis(redis)


def test_an_owner_that_completes_while_recovery_looks_at_its_claim_wins(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    queue.add(["1:A"])
    claim = queue.claim_batch("slow", 10).claim
    clock.move(301)
    pages = list(queue._processing_pages())
    queue._processing_pages = lambda: iter(pages)  # type: ignore[method-assign]
    assert queue.mark_complete(claim).count == 1
    before = whole_redis(redis)
    assert queue.recover_stale() == (GivenBack(), ())
    assert whole_redis(redis) == before


def test_an_owner_that_comes_back_after_recovery_loses_and_the_member_is_refreshed_again(
    redis: Redis, faked: Faked
) -> None:
    queue, clock = faked
    queue.add(["1:A"])
    claim = queue.claim_batch("slow", 10).claim
    clock.move(301)
    queue.recover_stale()
    again = queue.claim_batch("other", 10).claim
    before = whole_redis(redis)
    assert queue.mark_complete(claim) == Completed(0, 1, False)
    assert queue.mark_failed(claim) == GivenBack(0, ())
    assert whole_redis(redis) == before
    assert queue.mark_complete(again).count == 1


# lost


def test_lost_is_who_is_neither_on_the_queue_nor_in_flight(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    state = {"queue:v2": {"1:A", "3:C"}} | flight("2:B b:n1:7", "3:C:n1:7", "1:A:n2:9")
    put(redis, state | {"attempts": {"4:D": "1"}})
    assert queue.lost(["4:D", "3:C", "2:B b", "1:A", "4:D", "5:E"]) == ["4:D", "5:E"]
    assert queue.lost([]) == []
    assert whole_redis(redis) == state | {"attempts": {"4:D": "1"}}


def test_thousands_are_looked_for_and_a_token_that_cannot_be_read_stops_nobody(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    put(redis, {"queue:v2": {f"{number}:A" for number in range(1, 4001)}})
    put(redis, flight(*(f"{number}:A:n1:7" for number in range(4001, 8001))))
    redis.sadd(PREFIX + "processing", b"\xff", b"8001:A")
    assert queue.lost(f"{number}:A" for number in range(1, 8003)) == ["8001:A", "8002:A"]


def test_a_claim_that_is_taken_over_in_the_middle_of_the_look_is_not_lost(redis: Redis, faked: Faked) -> None:
    """Its old token is gone when the scan comes to it, and the new one stands where the scan has been."""
    queue, _ = faked
    queue.add(["1:A", "2:B"])
    claim = queue.claim_batch("me", 10).claim
    scan, looks = queue._processing_pages, []

    def scan_and_be_overtaken() -> Any:
        looks.append(1)
        if len(looks) > 1:
            return scan()
        queue.take_over(claim.only(["1:A"]), "you")
        return iter([[raw for page in scan() for raw in page if not raw.startswith(b"1:A:")]])

    queue._processing_pages = scan_and_be_overtaken  # type: ignore[method-assign]
    assert queue.lost(["1:A", "2:B", "9:Z"]) == ["9:Z"]
    assert len(looks) == 2


# signs of life, wake, pause, look


def test_silent_nodes_are_forgotten(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    assert queue.sign_of_life("a") == 1
    clock.move(5)
    assert queue.sign_of_life("b") == 2
    clock.move(5)
    assert queue.sign_of_life("b") == 2
    clock.move(0.000001)
    assert queue.sign_of_life("b") == 1
    assert whole_redis(redis) == {"nodes": {"b": clock.now}}


def test_signs_from_the_future_are_forgotten_when_the_clock_was_put_right(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    put(redis, {"nodes": SIGNS})
    assert queue.sign_of_life("me") == 3
    assert whole_redis(redis) == {"nodes": {"b": SIGNS["b"], "d": SIGNS["d"], "me": NOW}}
    clock.move(-10)
    assert queue.sign_of_life("you") == 3
    assert whole_redis(redis) == {"nodes": {"b": SIGNS["b"], "me": NOW, "you": clock.now}}
    assert queue.stats().nodes == ("b", "me", "you")
    assert queue.sign_of_life("me") == 3
    assert whole_redis(redis) == {"nodes": {"b": SIGNS["b"], "me": clock.now, "you": clock.now}}


QUEUED = {"queue:v2": {"1:A"}}
WAKE = {
    "nothing waits": Case({}, {}, False),
    "somebody waits and no tick is on its way": Case(QUEUED, QUEUED | {"wake": "1"}, True),
    "a tick was there a moment ago and nobody marked since": Case(QUEUED | {"wake": "1"}, QUEUED, False),
    "nor does anybody wait": Case({"wake": "1"}, {}, False),
    "a tick was there a moment ago and somebody marked since": Case(
        QUEUED | {"wake": "2"}, QUEUED | {"wake": "1"}, True
    ),
    "the database is away": Case(QUEUED | {"pause": "1"}, QUEUED | {"pause": "1"}, False),
}


@pytest.mark.parametrize("name", WAKE)
def test_wake(name: str, redis: Redis, faked: Faked) -> None:
    case = WAKE[name]
    assert played(redis, case, faked[0].wake) == case.result
    if case.result:
        assert 0 < redis.pttl(PREFIX + "wake") <= 2000


def test_marks_of_a_moment_share_one_tick_after_it_and_without_marks_there_is_none(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    asked = [queue.add(["1:A"]).wake]
    queue.mark_complete(queue.claim_batch("me", 10).claim)
    asked += [queue.add([f"{number}:A"]).wake for number in range(2, 5)]
    asked.append(queue.wake())
    assert asked == [True, False, False, False, True]
    batch = queue.claim_batch("me", 10)
    assert set(batch.claim.members) == {"2:A", "3:A", "4:A"}
    queue.mark_complete(batch.claim)
    assert [queue.wake(), queue.wake()] == [False, False]
    assert queue.add(["5:A"]).wake, "after a quiet moment the first sends its tick itself"


def test_a_pause_ends_by_itself(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, pause=0.05)
    queue.pause()
    assert redis.exists(PREFIX + "pause")
    wait_until(lambda: not redis.exists(PREFIX + "pause"), "the pause is over")


def test_a_pause_of_nothing_is_no_pause(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, pause=0.0)
    queue.pause()
    assert whole_redis(redis) == {}


def test_looking_changes_nothing(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    state = flight("1:A:n1:7", "2:B:n1:7") | {
        "queue:v2": {"3:C"},
        "attempts": {"1:A": "1"},
        "nodes": {"n1": NOW, "n0": NOW, "gone": 5} | SIGNS,
        "wake": "1",
    }
    put(redis, state)
    stats = queue.stats()
    assert (stats.now, stats.backlog, stats.in_flight, stats.failed_before) == (NOW, 1, 2, 1)
    assert (stats.pause_ms, stats.nodes) == (0, ("b", "d", "n0", "n1"))
    assert set(queue.claims()) == {Token("1:A", "n1", 7), Token("2:B", "n1", 7)}
    assert whole_redis(redis) == state


# the world around


def test_after_flushall_in_the_middle_everything_works_and_the_old_claim_is_outlived(
    redis: Redis, faked: Faked
) -> None:
    queue, clock = faked
    queue.add(["1:A"])
    claim = queue.claim_batch("me", 10).claim
    redis.flushall()
    clock.move(1)
    assert queue.take_over(claim, "me") == Claim("me", "0", ())
    assert queue.mark_complete(claim) == Completed(0, 1, False)
    assert queue.mark_failed(claim) == GivenBack()
    assert whole_redis(redis) == {}
    assert queue.add(["1:A"]) == Marked(1, True)
    assert queue.claim_batch("me", 10).claim.members == ("1:A",)


def test_every_verb_works_after_the_scripts_were_flushed(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    claim = Claim("n1", "7", ("1:A",))
    for verb in (
        lambda: queue.add(["1:A"]),
        lambda: queue.claim_batch("me", 10),
        lambda: queue.take_over(claim, "me"),
        lambda: queue.mark_complete(claim),
        lambda: queue.mark_failed(claim),
        queue.recover_stale,
        queue.wake,
        queue.stats,
        lambda: queue.sign_of_life("me"),
    ):
        redis.script_flush()
        verb()


def test_with_redis_away_every_verb_says_so_in_our_own_words() -> None:
    queue, _ = queue_without_redis()
    claim = Claim("n1", "7", ("1:A",))
    for verb in (
        lambda: queue.add(["1:A"]),
        lambda: queue.claim_batch("me", 10),
        lambda: queue.take_over(claim, "me"),
        lambda: queue.mark_complete(claim),
        lambda: queue.mark_failed(claim),
        queue.recover_stale,
        queue.wake,
        queue.pause,
        queue.stats,
        lambda: list(queue.claims()),
        lambda: queue.sign_of_life("me"),
    ):
        with pytest.raises(QueueUnavailable, match=r"^Redis: "):
            verb()


def queue_without_redis() -> tuple[ExecutionQueue, Redis]:
    from executions.conf import refresh_settings

    client = absent_redis()
    return ExecutionQueue(refresh_settings(), client, client), client


def test_real_clocks_give_no_stamp_twice(redis: Redis, queue: ExecutionQueue) -> None:
    queue.add(f"{number}:A" for number in range(1, 51))
    stamps = [queue.claim_batch("me", 1).claim.stamp for _ in range(50)]
    assert len(set(stamps)) == 50
    assert {int(stamp) % 2 for stamp in stamps} == {0}
    assert abs(int(stamps[0]) - time.time_ns() // 1000) < 60 * SECOND


def test_no_verb_reads_a_large_set_at_once(redis: Redis, faked: Faked) -> None:
    """SLOWLOG stays clean only if no script asks for all of a set."""
    from executions.queue import scripts

    for name in scripts.KEYS:
        text = scripts.source(name).upper()
        assert "SMEMBERS" not in text
        assert "'KEYS'" not in text
        assert "HGETALL" not in text
