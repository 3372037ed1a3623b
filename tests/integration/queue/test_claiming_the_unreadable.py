"""What a claim does with members that cannot be read: it drops them, tells of them, and goes on."""

import pytest

from harbor_refresh.tasks.pacing import TICK_SENT
from harbor_refresh.tasks.queue.members import Token
from tests.integration.queue.verb_cases import ALIVE, NOW, Faked, flight, token
from tests.integration.redis_state import PREFIX, Redis, queue_with, whole_redis

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
    batch = queue.claim("me", 100)
    assert set(batch.claim.members) == {"1:A", "2:B b"}
    assert batch.unreadable == (raw,)
    assert batch.attempts == {"1:A": 1}
    assert whole_redis(redis) == ALIVE | flight(token("1:A"), token("2:B b")) | {
        "stamp": str(NOW),
        "cursor": "0",
        "wake": TICK_SENT,
        "attempts": {"1:A": "1"},
    }


def test_nothing_but_members_that_cannot_be_read_leaves_nothing(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    redis.sadd(PREFIX + "queue:v2", b"x", b"\xff")
    batch = queue.claim("me", 100)
    assert (batch.claim.members, set(batch.unreadable)) == ((), {b"x", b"\xff"})
    assert whole_redis(redis) == ALIVE | {"stamp": str(NOW), "cursor": "0", "wake": TICK_SENT}


def test_thousands_of_unreadable_members_are_dropped_in_pages(redis: Redis) -> None:
    queue = queue_with(redis, fanout=10_000, depth=2, rest=0.0)
    redis.sadd(PREFIX + "queue:v2", *(f"bad{number}" for number in range(9_000)))
    redis.sadd(PREFIX + "queue:v2", "1:A", "2:B")
    batch = queue.claim("me", 20_000)
    assert (set(batch.claim.members), len(batch.unreadable)) == ({"1:A", "2:B"}, 9_000)
    assert {one.member for one in queue.tokens() if isinstance(one, Token)} == {"1:A", "2:B"}


def test_dropping_unreadable_members_wakes_no_tick_because_the_tick_that_claims_is_still_at_work(
    redis: Redis,
) -> None:
    queue = queue_with(redis, fanout=20, depth=1, rest=0.0)
    redis.sadd(PREFIX + "queue:v2", *(f"bad{number}" for number in range(30)))
    assert len(queue.claim("me", 20).unreadable) == 20
    assert "wake" not in whole_redis(redis)
