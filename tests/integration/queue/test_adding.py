"""add: what a mark leaves on the queue, when it asks for a tick, and how often a member is counted."""

import pytest

from harbor_refresh.tasks.pacing import MARKED_SINCE, SMALL, TICK_SENT
from harbor_refresh.tasks.queue.replies import Marked
from tests.integration.queue.verb_cases import Case, Faked, flight, played, waiting
from tests.integration.redis_state import PREFIX, Redis, whole_redis

ADD = {
    "the first mark on an empty queue asks for a tick": Case(
        {}, {"queue:v2": {"1:A", "2:B"}, "wake": TICK_SENT}, Marked(2, True)
    ),
    "a mark on a short queue asks, too: those that wait there may have to rest": Case(
        {"queue:v2": {"3:C"}}, {"queue:v2": {"1:A", "2:B", "3:C"}, "wake": TICK_SENT}, Marked(2, True)
    ),
    "a queue is short with 16 members": Case(
        {"queue:v2": waiting(SMALL)},
        {"queue:v2": waiting(SMALL) | {"1:A", "2:B"}, "wake": TICK_SENT},
        Marked(2, True),
    ),
    "a mark on a long queue asks for nothing while somebody works": Case(
        {"queue:v2": waiting(SMALL + 1)} | flight("9:Z:n1:7"),
        {"queue:v2": waiting(SMALL + 1) | {"1:A", "2:B"}} | flight("9:Z:n1:7"),
        Marked(2, False),
    ),
    "and asks if nobody does": Case(
        {"queue:v2": waiting(SMALL + 1)},
        {"queue:v2": waiting(SMALL + 1) | {"1:A", "2:B"}, "wake": TICK_SENT},
        Marked(2, True),
    ),
    "marking twice is marking once": Case(
        {"queue:v2": {"1:A", "2:B"}}, {"queue:v2": {"1:A", "2:B"}}, Marked(0, False)
    ),
    "while a tick is on its way nobody asks for another, and it is noted that there was a mark": Case(
        {"wake": TICK_SENT}, {"queue:v2": {"1:A", "2:B"}, "wake": MARKED_SINCE}, Marked(2, False)
    ),
    "which is noted once": Case(
        {"wake": MARKED_SINCE}, {"queue:v2": {"1:A", "2:B"}, "wake": MARKED_SINCE}, Marked(2, False)
    ),
    "to be marked again while one waits is not noted": Case(
        {"queue:v2": {"1:A", "2:B"}, "wake": TICK_SENT},
        {"queue:v2": {"1:A", "2:B"}, "wake": TICK_SENT},
        Marked(0, False),
    ),
    "nor is a mark on a long queue": Case(
        {"queue:v2": waiting(SMALL + 1), "wake": TICK_SENT} | flight("9:Z:n1:7"),
        {"queue:v2": waiting(SMALL + 1) | {"1:A", "2:B"}, "wake": TICK_SENT} | flight("9:Z:n1:7"),
        Marked(2, False),
    ),
    "what is in flight is marked again": Case(
        flight("1:A:n1:7"),
        flight("1:A:n1:7") | {"queue:v2": {"1:A", "2:B"}, "wake": TICK_SENT},
        Marked(2, True),
    ),
}


@pytest.mark.parametrize("name", ADD)
def test_add(name: str, redis: Redis, faked: Faked) -> None:
    case = ADD[name]
    assert played(redis, case, lambda: faked[0].mark(["1:A", "2:B"])) == case.result


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
        assert queue.mark(["1:A"]) == Marked(0, False)
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


def test_ten_thousand_marks_in_one_call_are_all_there(redis: Redis, faked: Faked) -> None:
    marked = faked[0].mark(f"{number}:A" for number in range(1, 10_001))
    assert marked == Marked(10_000, True)
    assert redis.scard(PREFIX + "queue:v2") == 10_000
