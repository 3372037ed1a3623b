"""Looks that change nothing: who is lost, and how much waits and is in flight."""

from typing import Any

from harbor_refresh.tasks.pacing import TICK_SENT
from harbor_refresh.tasks.queue.members import Token
from tests.integration.queue.verb_cases import NOW, SIGNS, Faked, flight, put
from tests.integration.redis_state import PREFIX, Redis, whole_redis


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
    queue.mark(["1:A", "2:B"])
    claim = queue.claim("me", 10).claim
    scan, looks = queue.pages_of_tokens, []

    def scan_and_be_overtaken() -> Any:
        looks.append(1)
        if len(looks) > 1:
            return scan()
        queue.take_over(claim.only(["1:A"]), "you")
        return iter([[raw for page in scan() for raw in page if not raw.startswith(b"1:A:")]])

    queue.pages_of_tokens = scan_and_be_overtaken  # type: ignore[method-assign]
    assert queue.lost(["1:A", "2:B", "9:Z"]) == ["9:Z"]
    assert len(looks) == 2


def test_looking_changes_nothing(redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    state = flight("1:A:n1:7", "2:B:n1:7") | {
        "queue:v2": {"3:C"},
        "attempts": {"1:A": "1"},
        "nodes": {"n1": NOW, "n0": NOW, "gone": 5} | SIGNS,
        "wake": TICK_SENT,
    }
    put(redis, state)
    stats = queue.stats()
    assert (stats.now, stats.backlog, stats.in_flight, stats.failed_before) == (NOW, 1, 2, 1)
    assert (stats.pause_ms, stats.nodes) == (0, ("b", "d", "n0", "n1"))
    assert set(queue.tokens()) == {Token("1:A", "n1", 7), Token("2:B", "n1", 7)}
    assert whole_redis(redis) == state
