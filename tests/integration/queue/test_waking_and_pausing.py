"""Marks that are counted, wake-ups that expire, and how long no node claims while the database is down.

What each verb leaves in Redis is what the model says (test_queue_state_machine.py).
"""

from harbor_refresh.tasks.conf.pacing import MARKED_SINCE, SMALL
from tests.integration.queue.verb_cases import Faked, put, waiting
from tests.integration.redis_state import PREFIX, Redis, queue_with_clock, whole_redis


def test_a_tick_that_was_asked_for_and_never_came_is_taken_for_lost_after_seconds(
    redis: Redis, faked: Faked
) -> None:
    faked[0].mark(["1:A"])
    assert 0 < redis.pttl(PREFIX + "wake") <= 2000
    redis.pexpire(PREFIX + "wake", 500)
    faked[0].mark(["2:A"])
    assert whole_redis(redis)["wake"] == MARKED_SINCE
    assert 0 < redis.pttl(PREFIX + "wake") <= 500, "marks must not keep a lost tick alive"


def test_one_that_is_marked_while_it_waits_on_a_short_queue_is_counted(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    queue.mark(waiting(SMALL - 1) | {"1:A"})
    for _ in range(3):
        assert not queue.mark(["1:A"])
    queue.mark(["1:C"])
    queue.mark(["1:A", "1:C"])
    assert whole_redis(redis)["marks"] == {"1:A": "3", "1:C": "1"}
    assert 0 < redis.pttl(PREFIX + "marks") <= 10_000
    queue.mark(["2:A"])
    queue.mark(["1:A"])
    assert whole_redis(redis)["marks"] == {"1:A": "3", "1:C": "1"}, "in a long queue nobody is counted"


def test_no_more_than_a_thousand_are_counted(redis: Redis, faked: Faked) -> None:
    """What a long queue's claims leave behind does not pile up while marks keep the key alive."""
    queue, _ = faked
    largest = 0
    for number in range(1, 2501):
        for _ in range(2):
            queue.mark([f"{number}:A"])
        redis.delete(PREFIX + "queue:v2")
        largest = max(largest, redis.hlen(PREFIX + "marks"))
    assert largest == 1000


def test_with_the_last_claim_attempts_of_lost_members_and_rubbish_are_gone(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    put(redis, {"attempts": {"7:C": "1", "rubbish": "x"}})
    queue.mark(["1:A"])
    queue.complete(queue.claim("me", 1).claim)
    assert "attempts" not in whole_redis(redis)


def test_a_pause_ends_by_itself(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, pause=60.0)
    queue.pause()
    assert 30_000 < redis.pttl(PREFIX + "pause") <= 60_000
