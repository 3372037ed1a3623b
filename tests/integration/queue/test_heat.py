"""Heat: while the queue is short, an execution whose reports keep coming is claimed at growing intervals."""

from random import Random
from typing import Any

import pytest

from harbor_refresh.tasks.conf.pacing import GATHERING_SECONDS, SMALL
from harbor_refresh.tasks.queue.claim import Batch
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.redis_state import (
    PREFIX,
    Clock,
    Redis,
    queue_with,
    queue_with_clock,
    sets_are_hash_tables,
    whole_redis,
    with_clock_of_test,
    with_scripts,
)

HEAT = PREFIX + "heat"
LONGEST = 0.8
US = 0.000001
#: So many marks while a member waits make it hotter.
MANY = 5

Warm = tuple[ExecutionQueue, Clock]


def lasting(redis: Redis, longest: float) -> Warm:
    """A queue whose heat does not expire by the real clock, which goes on while a test stands still."""

    def edited(text: str) -> str:
        return with_clock_of_test(text).replace("text(2 * longest_rest / 1000)", "3600000")

    queue = queue_with(redis, chunk=100, depth=10, rest=longest)
    return with_scripts(queue, redis, edited), Clock(redis, heard=True)


@pytest.fixture
def warm(redis: Redis) -> Warm:
    return lasting(redis, LONGEST)


def claim(queue: ExecutionQueue, redis: Redis, count: int = 1000) -> Batch:
    """A claim that is completed at once."""
    batch = queue.claim("me", count)
    queue.complete(batch.claim)
    return batch


def press(queue: ExecutionQueue, member: str, times: int = MANY) -> None:
    """Mark it, and again so many times while it waits."""
    for _ in range(1 + times):
        queue.mark([member])


def heat(redis: Redis) -> dict[str, str]:
    found: dict[str, str] = whole_redis(redis).get("heat", {})
    return found


def waiting(redis: Redis) -> set[str]:
    found: set[str] = whole_redis(redis).get("queue:v2", set())
    return found


@pytest.mark.parametrize(
    ("longest", "rests"),
    [
        (0.8, [0.05, 0.1, 0.2, 0.4, 0.8, 0.8, 0.8]),
        (0.3, [0.05, 0.1, 0.2, 0.3, 0.3]),
        (0.02, [0.02, 0.02, 0.02]),
        (60.0, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60, 60]),
    ],
)
def test_while_many_marks_come_rests_double_up_to_the_longest(
    longest: float, rests: list[float], redis: Redis
) -> None:
    queue, clock = lasting(redis, longest)
    queue.mark(["1:A"])
    assert claim(queue, redis).claim.members == ("1:A",)
    for rest in rests:
        press(queue, "1:A")
        batch = claim(queue, redis)
        assert (batch.claim.members, batch.wait, batch.more) == ((), pytest.approx(rest), False)
        clock.move(rest - US)
        batch = claim(queue, redis)
        assert (batch.claim.members, batch.wait) == ((), pytest.approx(US))
        assert waiting(redis) == {"1:A"}
        clock.move(US)
        batch = claim(queue, redis)
        assert (batch.claim.members, batch.wait) == (("1:A",), 0)


@pytest.mark.parametrize(("times", "steps"), [(0, [4, 3, 2, 1, 1]), (4, [4, 3, 2, 1, 1]), (5, [5, 5])])
def test_a_rest_grows_with_many_marks_and_shrinks_to_the_first_with_few(
    times: int, steps: list[int], redis: Redis, warm: Warm
) -> None:
    queue, clock = warm
    for _ in range(6):
        press(queue, "1:A")
        claim(queue, redis)
        clock.move(LONGEST)
    assert heat(redis) == {"1:A": f"5:{clock.now - 800_000}"}
    found = []
    for _ in steps:
        press(queue, "1:A", times)
        claim(queue, redis)
        found.append(int(heat(redis)["1:A"].partition(":")[0]))
        clock.move(LONGEST)
    assert found == steps
    assert "marks" not in whole_redis(redis), "each claim begins to count anew"


def test_a_hot_member_delays_no_other_member(redis: Redis, warm: Warm) -> None:
    queue, clock = warm
    queue.mark(["1:A"])
    claim(queue, redis)
    clock.move(0.01)
    queue.mark(["2:B"])
    claim(queue, redis)
    queue.mark(["1:A", "2:B", "3:C"])
    batch = claim(queue, redis)
    assert (batch.claim.members, batch.backlog) == (("3:C",), 3)
    assert batch.wait == pytest.approx(0.04), "the shortest rest decides when to check again"
    assert waiting(redis) == {"1:A", "2:B"}


def test_hot_members_at_the_cursor_do_not_hide_other_members(redis: Redis, warm: Warm) -> None:
    """Where less is asked for than waits, each claim goes on from where the last one stopped."""
    queue, clock = warm
    hot = {f"{number}:A" for number in range(1, SMALL // 2 + 1)}
    cold = {f"{number}:B" for number in range(SMALL // 2 + 1, SMALL + 1)}
    queue.mark(hot)
    claim(queue, redis)
    with sets_are_hash_tables(redis):
        queue.mark(hot | cold)
        taken: set[str] = set()
        dice = Random(1)
        for _ in range(1000):
            if taken == cold:
                break
            clock.move(dice.randrange(40) * US)
            taken |= set(claim(queue, redis, 2).claim.members)
    assert taken == cold
    assert waiting(redis) == hot


def test_a_long_queue_has_no_rests(redis: Redis, warm: Warm) -> None:
    queue, _ = warm
    names = {f"{number}:A" for number in range(1, SMALL + 2)}
    for _ in range(3):
        queue.mark(names)
        batch = claim(queue, redis)
        assert (set(batch.claim.members), batch.wait) == (names, 0)
    assert heat(redis) == {}
    names.remove("1:A")
    queue.mark(names)
    claim(queue, redis)
    assert set(heat(redis)) == names


@pytest.mark.parametrize("back", [US, 0.04, LONGEST, 1.5 * LONGEST, 2 * LONGEST, 3600.0])
def test_after_a_clock_step_back_no_rest_exceeds_the_longest(back: float, redis: Redis, warm: Warm) -> None:
    queue, clock = warm
    for _ in range(6):
        press(queue, "1:A")
        claim(queue, redis)
        clock.move(LONGEST)
    press(queue, "1:A")
    claim(queue, redis)
    clock.move(-back)
    queue.mark(["1:A"])
    held = claim(queue, redis).wait
    assert held <= LONGEST
    clock.move(LONGEST)
    claim(queue, redis)
    assert waiting(redis) == set()


def test_heat_and_marks_are_bounded_and_expire(redis: Redis) -> None:
    queue, _ = queue_with_clock(redis, chunk=100, depth=10, rest=LONGEST)
    largest = 0
    for turn in range(2000 // SMALL):
        queue.mark(f"{turn * SMALL + number}:A" for number in range(1, SMALL + 1))
        claim(queue, redis)
        largest = max(largest, len(heat(redis)))
    assert 900 < largest <= 1000
    queue.mark(["9999:A"])
    queue.claim("me", 10)
    left: Any = redis.pttl(HEAT)
    assert 0 < left <= 2 * LONGEST * 1000


def test_a_single_hot_execution_is_refreshed_a_few_times_and_not_for_each_report(redis: Redis, warm: Warm) -> None:
    """A report every millisecond for ten seconds; a tick for each that asks for one, and for each look, a moment
    later or when the rest is over, that finds one is needed."""
    queue, clock = warm
    times, last, ticks, looks = 0, 0, 0, list[int]()

    def tick() -> None:
        nonlocal times, last, ticks
        ticks += 1
        batch = claim(queue, redis)
        redis.persist(queue.keys.wake)
        times += len(batch.claim)
        last = clock.now if batch.claim.members else last
        looks.append(clock.now + round(GATHERING_SECONDS * 1_000_000))
        if batch.wait:
            looks.append(clock.now + round(batch.wait * 1_000_000))

    for _ in range(10_000):
        clock.move(0.001)
        if queue.mark(["1:A"]):
            tick()
        for due in [due for due in looks if due <= clock.now]:
            looks.remove(due)
            if queue.must_send_tick():
                tick()
        assert clock.now - last <= 1_000_000, "it waits for its rest, and a moment, and no longer"
    assert 12 <= times <= 18
