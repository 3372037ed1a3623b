"""Signs of life: how long a node is alive by its last one, whichever way the clock goes."""

from tests.integration.queue.table import NOW, SIGNS, Faked, put
from tests.integration.state import Redis, whole_redis


def test_silent_nodes_are_forgotten(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    assert queue.sign_of_life("a") == 1
    clock.move(5)
    assert queue.sign_of_life("b") == 2
    clock.move(5)
    assert queue.sign_of_life("b") == 2
    clock.move(0.000001)
    assert queue.sign_of_life("b") == 1
    assert whole_redis(redis) == {"nodes": {"b": clock.now}}


def test_signs_from_the_future_are_forgotten_when_the_clock_was_put_right(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    put(redis, {"nodes": SIGNS})
    assert queue.sign_of_life("me") == 3
    assert whole_redis(redis) == {"nodes": {"b": SIGNS["b"], "d": SIGNS["d"], "me": NOW}}
    clock.move(-10)
    assert queue.sign_of_life("you") == 3
    assert whole_redis(redis) == {"nodes": {"b": SIGNS["b"], "me": NOW, "you": clock.now}}
    assert queue.stats().nodes == ("b", "me", "you")
    assert queue.sign_of_life("me") == 3
    assert whole_redis(redis) == {"nodes": {"b": SIGNS["b"], "me": clock.now, "you": clock.now}}
