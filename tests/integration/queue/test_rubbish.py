"""Entries in our keys that no release writes: the work goes on."""

from typing import Any

import pytest

from harbor_refresh.tasks.conf.pacing import TICK_SENT
from harbor_refresh.tasks.queue.claim import Whereabouts
from harbor_refresh.tasks.queue.keys import KINDS, Keys
from tests.integration.queue.verb_cases import ALIVE, Faked, flight, put, token
from tests.integration.redis_state import PREFIX, Redis, queue_with, queue_with_clock, whole_redis

MEMBERS = ("1:A", "2:B", "3:C")
UNREADABLE = (b"\xff", b"", b"7", b"0:X", b"7:a:b", b"99999999999999999999:X", b"7:A:host:no-number")
NUMBERS = (b"\xff", b"", b"x", b"-5", b"1.5", b"nan", b"inf", b"1e400", b"99999999999999999999999999")


def rubbish(name: str) -> list[Any]:
    """Values of the right type for this key."""
    match KINDS[name]:
        case "set":
            return [set(UNREADABLE)]
        case "zset":
            return [dict.fromkeys(UNREADABLE, score) for score in (-1.0, 0.0, 1e300)]
        case "hash":
            fields = (*MEMBERS, *UNREADABLE, "since", "heard", "server")
            return [dict.fromkeys(fields, number) for number in NUMBERS]
        case _:
            return list(NUMBERS)


def key_of(name: str) -> str:
    return str(getattr(Keys(PREFIX), name))


def write(redis: Redis, name: str, value: Any) -> None:
    if KINDS[name] == "zset":
        redis.zadd(key_of(name), value)
    else:
        put(redis, {key_of(name).removeprefix(PREFIX): value})


def whole_life(redis: Redis) -> None:
    """All verbs: members are marked twice, claimed, fail, rest, are claimed again and completed."""
    queue, clock = queue_with_clock(redis, max_attempts=3)
    queue.heartbeat("me")
    queue.mark(MEMBERS)
    queue.mark(MEMBERS[:1])  # counts a mark of a member that waits
    assert queue.lost(MEMBERS) == []
    first = queue.claim("me", 100).claim
    assert set(first.members) == set(MEMBERS)
    assert queue.fail(queue.take_over(first, "me")).exhausted == ()
    clock.move(5)
    queue.heartbeat("me")
    again = queue.take_over(queue.claim("me", 100).claim, "me")
    assert set(again.members) == set(MEMBERS)
    assert queue.complete(again).claim_expired == 0
    assert not queue.must_send_tick()
    assert (queue.stats().backlog, queue.stats().backlog) == (0, 0)
    assert queue.whereabouts(MEMBERS[0]) == Whereabouts(False, 0, ())
    assert queue.oldest_waiting(10) == []
    queue.leave("me")


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"pause"}))  # any value pauses
def test_rubbish_in_a_key_stops_no_verb(name: str, redis: Redis) -> None:
    for value in rubbish(name):
        redis.flushall()
        write(redis, name, value)
        whole_life(redis)


#: Members of the queue that no claim can read.
MALFORMED = [
    b"",
    b"1:A:B",
    b"99999999999999999999999:A",
    b"\xff\xfe",
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
        "cursor": "0",
        "wake": TICK_SENT,
        "attempts": {"1:A": "1"},
    }


def test_thousands_of_unreadable_members_are_dropped_in_pages(redis: Redis) -> None:
    queue = queue_with(redis, chunk=10_000, depth=2, rest=0.0)
    redis.sadd(PREFIX + "queue:v2", *(f"bad{number}" for number in range(9_000)))
    redis.sadd(PREFIX + "queue:v2", "1:A", "2:B")
    batch = queue.claim("me", 20_000)
    assert (set(batch.claim.members), len(batch.unreadable)) == ({"1:A", "2:B"}, 9_000)
    assert {one.member for one in queue.tokens()} == {"1:A", "2:B"}
