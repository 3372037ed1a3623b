"""Signs of life: how long a node is alive by its last one, whichever way the clock goes; and when silence means
death."""

import pytest

from tests.integration.queue.verb_cases import NOW, SECOND, Faked
from tests.integration.redis_state import PREFIX, Clock, Redis, signs_of_life_come, whole_redis


@pytest.fixture
def unheard(redis: Redis, faked: Faked) -> Faked:
    """Two nodes, one of which has been silent for too long; and only the test says what was heard."""
    redis.zadd(PREFIX + "nodes", {"silent": NOW - 10 * SECOND - 1, "lately": NOW - 9 * SECOND})
    redis.delete(PREFIX + "presence")
    return faked[0], Clock(redis)


#: Since when signs have come, when the last came, and of which server.
UNSETTLED = {
    "none was ever heard": None,
    "the last one was heard long ago: Redis was down, or no worker ran": (1, NOW - 5 * SECOND - 1, ""),
    "the clock has gone back": (NOW + 1, NOW, ""),
    "the last one comes from the future": (1, NOW + 5 * SECOND + 1, ""),
    "they came to a server that is not this one, or was restarted": (1, NOW, "another"),
}


@pytest.mark.parametrize("name", UNSETTLED)
def test_while_signs_may_be_missing_no_node_is_dead(name: str, redis: Redis, unheard: Faked) -> None:
    queue, clock = unheard
    if heard := UNSETTLED[name]:
        since, last, server = heard
        here = signs_of_life_come(redis, since=since, heard=last)
        redis.hset(PREFIX + "presence", "server", server or here["server"])
    assert not queue.stats().is_settled
    assert (queue.heartbeat("me"), len(queue.stats().nodes)) == (0, 2)
    assert whole_redis(redis)["nodes"].keys() == {"silent", "lately", "me"}
    clock.move(5)
    queue.heartbeat("me")
    clock.move(5)
    assert (queue.heartbeat("me"), len(queue.stats().nodes)) == (0, 1), "each has as long as a node may be silent"
    clock.move(0.000001)
    assert (queue.heartbeat("me"), len(queue.stats().nodes)) == (2, 1)


def test_signs_that_keep_coming_let_silence_mean_death(redis: Redis, unheard: Faked) -> None:
    queue, _ = unheard
    signs_of_life_come(redis, since=NOW - 10 * SECOND, heard=NOW - 5 * SECOND)
    assert not queue.stats().is_settled
    signs_of_life_come(redis, since=NOW - 10 * SECOND - 1, heard=NOW - 5 * SECOND)
    assert queue.stats().is_settled
    assert (queue.heartbeat("me"), len(queue.stats().nodes)) == (1, 2)


def test_the_process_that_comes_back_first_declares_no_other_dead(redis: Redis, unheard: Faked) -> None:
    """Redis was down for 15 seconds, and nothing was lost."""
    queue, clock = unheard
    signs_of_life_come(redis, since=1, heard=NOW)
    for node in ("a", "b"):
        queue.heartbeat(node)
    clock.move(15)
    assert (queue.heartbeat("a"), len(queue.stats().nodes)) == (0, 1)
    clock.move(2)
    assert (queue.heartbeat("b"), len(queue.stats().nodes)) == (0, 2)
