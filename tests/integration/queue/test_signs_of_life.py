"""Signs of life: how long a node is alive by its last one, whichever way the clock goes."""

from executions.queue import Sign
from tests.integration.queue.table import NOW, SIGNS, Faked, put
from tests.integration.state import Redis, whole_redis


def test_silent_nodes_are_forgotten_by_one_sign_of_another_which_says_so(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    since = clock.now
    assert queue.sign_of_life("a") == Sign(live=1, silent=0, since=since)
    clock.move(5)
    assert queue.sign_of_life("b") == Sign(live=2, silent=0, since=since)
    clock.move(5)
    assert queue.sign_of_life("b") == Sign(live=2, silent=0, since=since)
    clock.move(0.000001)
    assert queue.sign_of_life("b") == Sign(live=1, silent=1, since=since)
    assert queue.sign_of_life("c") == Sign(live=2, silent=0, since=since)
    assert whole_redis(redis) == {"nodes": {"b": clock.now, "c": clock.now}, "since": str(since)}


def test_signs_from_the_future_are_forgotten_when_the_clock_was_put_right(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    put(redis, {"nodes": SIGNS, "since": str(NOW)})
    assert queue.sign_of_life("me") == Sign(live=3, silent=len(SIGNS) - 2, since=NOW)
    assert whole_redis(redis)["nodes"] == {"b": SIGNS["b"], "d": SIGNS["d"], "me": NOW}
    clock.move(-10)
    assert queue.sign_of_life("you") == Sign(live=3, silent=1, since=NOW)
    assert whole_redis(redis)["nodes"] == {"b": SIGNS["b"], "me": NOW, "you": clock.now}
    assert queue.stats().nodes == ("b", "me", "you")
    assert queue.sign_of_life("me") == Sign(live=3, silent=0, since=NOW)
    assert whole_redis(redis)["nodes"] == {"b": SIGNS["b"], "me": clock.now, "you": clock.now}


def test_a_redis_that_was_emptied_remembers_since_the_next_sign(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    queue.sign_of_life("a")
    redis.flushall()
    clock.set(NOW + 7)
    assert queue.sign_of_life("a") == Sign(live=1, silent=0, since=NOW + 7)
