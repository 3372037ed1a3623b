"""Stale claims: when signs of life may be missing, and while nodes take over, complete and come back.

Which claims of silent nodes return is what the model says (test_queue_state_machine.py).
"""

from typing import Any

import pytest

from harbor_refresh.tasks.pipeline.recovery import release_stale
from harbor_refresh.tasks.queue.claim import Released
from tests.integration.queue.verb_cases import NOW, SECOND, Faked, flight, put
from tests.integration.redis_state import PREFIX, Redis, signs_of_life_come, whole_redis


def test_claims_of_a_node_that_said_that_it_stops_wait_for_their_message_until_they_are_old(
    redis: Redis, faked: Faked
) -> None:
    old, fresh = NOW - 300 * SECOND - 1, NOW - 300 * SECOND + 1
    put(redis, flight(f"1:A:waiting@gone:{fresh}", f"2:B:gone:{fresh}", f"3:C:waiting@gone:{old}"))
    put(redis, {"nodes": {"n1": NOW}, "left": {"gone": fresh}})
    assert release_stale(faked[0]) == (Released(2, ()), ())
    state = whole_redis(redis)
    assert (state["processing"], state["queue:v2"]) == ({f"1:A:waiting@gone:{fresh}"}, {"2:B", "3:C"})
    assert state["attempts"] == {"2:B": "1"}


@pytest.mark.parametrize(
    "raw",
    [
        *(b"x", b"1:A", b"1:A:n1", b"1:A::7", b"1:A:n1:x", b"1:A:n1:-7", b"1:A:B:n1:7", b":A:n1:7", b"0:A:n1:7"),
        *(b"1::n1:7", b"\xff", b"1:A:n1:007", b"1:A:n1:12345678901234567890"),
    ],
)
def test_a_token_that_cannot_be_read_is_dropped_and_told(raw: bytes, redis: Redis, faked: Faked) -> None:
    queue, _ = faked
    put(redis, flight(f"1:A:n1:{NOW}") | {"nodes": {"n1": NOW}})
    before = whole_redis(redis)
    redis.sadd(PREFIX + "processing", raw)
    assert release_stale(queue) == (Released(), (raw,))
    assert whole_redis(redis) == before


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


def test_a_node_that_took_a_claim_over_after_recovery_looked_who_is_alive_keeps_it(
    redis: Redis, faked: Faked
) -> None:
    """A worker that starts greets with a recovery, just when other new nodes take their first claims."""
    queue, _ = faked
    queue.mark(["1:A"])
    claim = queue.claim("old", 10).claim
    look = queue.stats

    def look_and_be_overtaken() -> Any:
        seen = look()
        queue.take_over(claim, "new")
        return seen

    queue.stats = look_and_be_overtaken  # type: ignore[method-assign]
    assert release_stale(queue) == (Released(), ())
    assert whole_redis(redis)["processing"] == {f"1:A:new:{NOW}"}
    assert "attempts" not in whole_redis(redis)


def test_an_owner_that_completes_while_recovery_looks_at_its_claim_wins(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    queue.mark(["1:A"])
    claim = queue.claim("slow", 10).claim
    clock.move(301)
    pages = list(queue.pages_of_tokens())
    queue.pages_of_tokens = lambda: iter(pages)  # type: ignore[method-assign]
    assert queue.complete(claim).claim_expired == 0
    before = whole_redis(redis)
    assert release_stale(queue) == (Released(), ())
    assert whole_redis(redis) == before


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
