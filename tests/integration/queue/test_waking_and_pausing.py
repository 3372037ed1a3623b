"""When a tick is worth sending, and how long nobody claims while the database is away."""

import pytest

from harbor_refresh.tasks.pacing import MARKED_SINCE, TICK_SENT
from tests.integration.queue.verb_cases import Case, Faked, played
from tests.integration.redis_state import PREFIX, Redis, queue_with_clock, whole_redis

QUEUED = {"queue:v2": {"1:A"}}
WAKE = {
    "nothing waits": Case({}, {}, False),
    "a member waits and no tick is on its way": Case(QUEUED, QUEUED | {"wake": TICK_SENT}, True),
    "a tick ran a moment ago and nothing was marked since": Case(QUEUED | {"wake": TICK_SENT}, QUEUED, False),
    "nor does anybody wait": Case({"wake": TICK_SENT}, {}, False),
    "a tick was there a moment ago and somebody marked since": Case(
        QUEUED | {"wake": MARKED_SINCE}, QUEUED | {"wake": TICK_SENT}, True
    ),
    "the database is away": Case(QUEUED | {"pause": "1"}, QUEUED | {"pause": "1"}, False),
}


@pytest.mark.parametrize("name", WAKE)
def test_wake(name: str, redis: Redis, faked: Faked) -> None:
    case = WAKE[name]
    assert played(redis, case, faked[0].must_send_tick) == case.result
    if case.result:
        assert 0 < redis.pttl(PREFIX + "wake") <= 2000


def test_marks_of_a_moment_share_one_tick_after_it_and_without_marks_there_is_none(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    asked = [queue.mark(["1:A"]).wake]
    queue.complete(queue.claim("me", 10).claim)
    asked += [queue.mark([f"{number}:A"]).wake for number in range(2, 5)]
    asked.append(queue.must_send_tick())
    assert asked == [True, False, False, False, True]
    batch = queue.claim("me", 10)
    assert set(batch.claim.members) == {"2:A", "3:A", "4:A"}
    queue.complete(batch.claim)
    assert [queue.must_send_tick(), queue.must_send_tick()] == [False, False]
    assert queue.mark(["5:A"]).wake, "after a quiet moment the first sends its tick itself"


def test_a_pause_ends_by_itself(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, pause=60.0)
    queue.pause()
    assert 30_000 < redis.pttl(PREFIX + "pause") <= 60_000


def test_a_pause_of_nothing_is_no_pause(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, pause=0.0)
    queue.pause()
    assert whole_redis(redis) == {}
