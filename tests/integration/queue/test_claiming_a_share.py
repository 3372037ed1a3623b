"""How several claims share out a queue: their sizes, their pages, and the wake meanwhile."""

from typing import Any

import pytest

from harbor_refresh.tasks.pacing import MARKED_SINCE, SMALL, TICK_SENT
from harbor_refresh.tasks.queue.members import Token
from tests.integration.queue.verb_cases import NOW, Faked, token, waiting
from tests.integration.redis_state import PREFIX, Redis, queue_with_clock, whole_redis


def test_a_claim_takes_no_scraps_while_others_work_and_the_last_one_finds_room(redis: Redis) -> None:
    """Room for a part of a chunk is left for the next, who finds more: unless it is all that waits."""
    queue, _ = queue_with_clock(redis, chunk=20, depth=2, rest=0.0)
    queue.mark(f"{number}:A" for number in range(1, 51))
    first = queue.claim("me", 21)
    assert (len(first.claim), first.more) == (21, False)
    for count in (1, 19, 20, 100):
        assert queue.claim("me", count).claim.members == ()
    queue.complete(first.claim.only(first.claim.members[:1]))
    second = queue.claim("me", 3)
    assert (len(second.claim), second.more) == (3, False)
    queue.complete(first.claim)
    third = queue.claim("me", 17)
    assert (len(third.claim), third.backlog, third.more) == (17, 26, True)
    assert len(queue.claim("me", 100).claim) == 9, "all that waits is no scrap"
    assert "queue:v2" not in whole_redis(redis)


def test_all_that_waits_is_claimed_though_it_is_less_than_a_chunk(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, chunk=20, depth=1, rest=0.0)
    for count in (15, 3):
        queue.mark(f"{number}:A" for number in range(1, count + 1))
        assert len(queue.claim("me", 100).claim) == count


def test_the_wake_stays_while_a_long_queue_is_shared_out(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, chunk=100, depth=10, rest=0.0)
    queue.mark(waiting(SMALL + 2))
    for state in (TICK_SENT, MARKED_SINCE):
        redis.set(PREFIX + "wake", state)
        assert len(queue.claim("me", 1).claim) == 1
        assert whole_redis(redis)["wake"] == state
    assert not redis.exists(PREFIX + "marks")
    queue.claim("me", 100)
    assert whole_redis(redis)["wake"] == TICK_SENT
    queue.tick_has_ended()
    assert not redis.exists(PREFIX + "wake")


@pytest.mark.parametrize("others", [6, 9], ids=["all the room", "more than the room"])
def test_a_claim_ends_with_the_page_after_which_others_took_the_room(
    others: int, redis: Redis, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.queue.queue.PAGE", 2)
    queue, _ = faked
    queue.mark(waiting(SMALL + 20))
    queue.heartbeat("you")
    theirs = {f"{number}:A:you:7" for number in range(others)}
    run = queue._run

    def between_pages(*words: Any, **options: Any) -> Any:
        answer = run(*words, **options)
        redis.sadd(PREFIX + "processing", *theirs)
        return answer

    monkeypatch.setattr(queue, "_run", between_pages)
    batch = queue.claim("me", 8)
    assert (len(batch.claim), batch.more) == (2, False)
    state = whole_redis(redis)
    assert len(state["queue:v2"]) == SMALL + 18
    assert state["processing"] == theirs | {token(one, int(batch.claim.stamp)) for one in batch.claim.members}


def test_all_pages_of_a_claim_wait_under_one_stamp_and_are_worked_on_under_another(redis: Redis) -> None:
    queue, clock = queue_with_clock(redis, chunk=5000, depth=1)
    clock.move(0.000001)
    names = {f"{number}:A" for number in range(1, 4001)}
    queue.mark(names)
    claim = queue.claim("me", 5000).claim
    assert (claim.stamp, set(claim.members)) == (str(NOW + 1), names)
    assert whole_redis(redis)["processing"] == {token(name, NOW + 1) for name in names}
    clock.move(0.000003)
    mine = queue.take_over(claim, "you")
    assert (mine.stamp, set(mine.members)) == (str(NOW + 4), names)
    assert whole_redis(redis)["processing"] == {f"{name}:you:{NOW + 4}" for name in names}
    assert {one.is_waiting for one in queue.tokens() if isinstance(one, Token)} == {False}


def test_the_next_claim_scans_on_where_the_last_page_of_the_last_claim_stopped(
    redis: Redis, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.queue.queue.PAGE", 2)
    queue, _ = faked
    queue.mark(waiting(SMALL + 20))
    run = queue._run

    def without_cursor(*words: Any, **options: Any) -> Any:
        redis.delete(queue.keys.cursor)
        return run(*words, **options)

    monkeypatch.setattr(queue, "_run", without_cursor)
    assert len(queue.claim("me", 4).claim) == 4
    assert redis.exists(queue.keys.cursor), "the second page has noted it again"


def test_a_short_queue_is_claimed_in_one_page_because_hot_members_rest(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.queue.queue.PAGE", 2)
    queue, _ = queue_with_clock(redis, chunk=100, depth=10, rest=1.0)
    queue.mark(waiting(SMALL))
    assert len(queue.claim("me", SMALL).claim) == 2


def test_members_that_arrive_between_two_pages_may_be_in_the_last_one(
    redis: Redis, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.queue.queue.PAGE", 15)
    queue, _ = queue_with_clock(redis, chunk=100, depth=10, rest=0.0)
    queue.mark(waiting(SMALL + 4))
    run = queue._run

    def marked_between(*words: Any, **options: Any) -> Any:
        answer = run(*words, **options)
        redis.sadd(PREFIX + "queue:v2", "77:Z", "78:Z")
        return answer

    monkeypatch.setattr(queue, "_run", marked_between)
    assert len(queue.claim("me", 100).claim) == SMALL + 6
    assert queue.claim("me", 0).claim.members == ()
