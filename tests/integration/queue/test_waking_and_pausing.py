"""Marks that are counted, wake-ups that expire, and how long nobody claims while the database is away.

What each verb leaves in Redis is what the model says (test_queue_state_machine.py).
"""

import pytest

from harbor_refresh.tasks.pacing import MARKED_SINCE, SMALL
from harbor_refresh.tasks.queue.claim import Claim, Completed
from tests.integration.queue.verb_cases import NOW, Faked, flight, put, waiting
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


def test_a_claim_of_many_pages_asks_for_a_tick_with_its_last_page_only(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an earlier page asked, the reply of the last page would hide it, and no tick would come."""
    queue, _ = queue_with_clock(redis, chunk=4, depth=1, rest=0.0)
    queue.mark(waiting(29))
    claim = queue.claim("me", 4).claim
    queue.tick_has_ended()
    monkeypatch.setattr("harbor_refresh.tasks.queue.sets.pages.__defaults__", (2,))
    assert queue.complete(claim) == Completed(0, True)


def test_with_the_last_claim_attempts_of_lost_members_and_rubbish_are_gone(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    put(redis, {"attempts": {"7:C": "1", "rubbish": "x"}})
    queue.mark(["1:A"])
    queue.complete(queue.claim("me", 1).claim)
    assert "attempts" not in whole_redis(redis)


def test_marks_of_a_moment_share_one_tick_after_it_and_without_marks_there_is_none(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    asked = [queue.mark(["1:A"])]
    queue.complete(queue.claim("me", 10).claim)
    asked += [queue.mark([f"{number}:A"]) for number in range(2, 5)]
    asked.append(queue.must_send_tick())
    assert asked == [True, False, False, False, True]
    batch = queue.claim("me", 10)
    assert set(batch.claim.members) == {"2:A", "3:A", "4:A"}
    queue.complete(batch.claim)
    assert [queue.must_send_tick(), queue.must_send_tick()] == [False, False]
    assert queue.mark(["5:A"]), "after a quiet moment the first sends its tick itself"


def test_a_pause_ends_by_itself(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, pause=60.0)
    queue.pause()
    assert 30_000 < redis.pttl(PREFIX + "pause") <= 60_000


@pytest.mark.parametrize(("count", "wakes"), [(SMALL, True), (SMALL + 1, False)])
def test_a_new_mark_beside_a_claim_wakes_a_tick_only_up_to_the_small_backlog(
    count: int, wakes: bool, redis: Redis, faked: Faked
) -> None:
    put(redis, {"queue:v2": waiting(count)} | flight("9:Z:n1:7"))
    assert faked[0].mark(["1:A"]) is wakes


@pytest.mark.parametrize(("nodes", "wakes"), [(("a",), False), (("a", "b"), True)])
def test_a_completion_wakes_a_tick_only_if_half_the_room_of_the_live_nodes_is_free(
    nodes: tuple[str, ...], wakes: bool, redis: Redis, faked: Faked
) -> None:
    """A node has room for four here, and three are left in flight."""
    put(redis, {"queue:v2": {"1:A"}, "nodes": dict.fromkeys(nodes, NOW)})
    put(redis, flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7", "4:C:n1:7", "5:C:n1:7"))
    assert faked[0].complete(Claim("n1", "7", ("1:A", "2:B"))) == Completed(0, wakes)
