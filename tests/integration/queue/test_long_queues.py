"""Claims read a long queue by a cursor: no member is claimed twice, and every member is claimed eventually.

How much a claim takes is what the model says (test_queue_state_machine.py).
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from redis.exceptions import ResponseError

from harbor_refresh.tasks.conf.pacing import SMALL
from harbor_refresh.tasks.queue import queue as queue_module
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.queue.verb_cases import Faked, token, waiting
from tests.integration.redis_state import (
    PREFIX,
    Clock,
    Redis,
    queue_with,
    queue_with_clock,
    sets_are_hash_tables,
    whole_redis,
)

CURSOR = PREFIX + "cursor"
PAGE = 7


@pytest.fixture(autouse=True)
def small_pages_and_hash_tables(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(queue_module, "PAGE", PAGE)
    with sets_are_hash_tables(redis):
        yield


@pytest.fixture
def roomy(redis: Redis) -> tuple[ExecutionQueue, Clock]:
    """Make a queue whose nodes have room for all members."""
    return queue_with_clock(redis, chunk=10_000, depth=2, rest=0.0)


Roomy = tuple[ExecutionQueue, Clock]


def members(count: int, start: int = 1) -> set[str]:
    return {f"{number}:A" for number in range(start, start + count)}


def scans(redis: Redis) -> int:
    info: Any = redis.info("commandstats")
    return int(info.get("cmdstat_sscan", {"calls": 0})["calls"])


def claimed_until_empty(queue: ExecutionQueue, count: int, *nodes: str) -> list[str]:
    """What one claim after the other brings, the nodes taking turns."""
    taken: list[str] = []
    while queue.stats().backlog:
        for node in nodes:
            batch = queue.claim(node, count)
            assert len(batch.claim) <= count
            assert batch.claim.members or not batch.backlog
            taken += batch.claim.members
    return taken


@pytest.mark.parametrize("count", [1, PAGE + 1, 10_000])
def test_every_member_of_a_long_queue_is_claimed_exactly_once(count: int, redis: Redis, roomy: Roomy) -> None:
    queue, _ = roomy
    everything = members(1000)
    queue.mark(everything)
    before = scans(redis)
    taken = claimed_until_empty(queue, count, "me")
    assert scans(redis) - before > 100
    assert len(taken) == 1000
    assert set(taken) == everything
    state = whole_redis(redis)
    assert {token.member for token in queue.tokens()} == everything
    assert set(state) <= {"processing", "nodes", "cursor", "wake"}


def test_no_member_starves_while_other_members_are_released_repeatedly(redis: Redis, roomy: Roomy) -> None:
    """Every member is claimed within a few rounds, although half of each claim is released at once."""
    queue, clock = roomy
    everything = members(300)
    queue.mark(everything)
    waiting, claims = set(everything), 0
    most = 4 * len(everything) // PAGE
    while waiting:
        claims += 1
        assert claims <= most, f"{len(waiting)} of 300 still wait after {claims} claims of {PAGE}"
        claim = queue.claim("me", PAGE).claim
        waiting -= set(claim.members)
        back = claim.only(member for number, member in enumerate(claim.members) if number % 2)
        queue.complete(claim.only(set(claim.members) - set(back.members)))
        queue.release(back)
        clock.move(0.001001)


@pytest.mark.parametrize("count", [1, 2, PAGE])
def test_no_member_starves_while_all_other_members_are_marked_again_at_once(count: int, redis: Redis) -> None:
    """Such a queue does not change, so each round has the same pages. Chance, by the real clock, must decide which
    members are cut from a page."""
    queue = queue_with(redis, chunk=10_000, depth=1, rest=0.0)
    everything = members(200)
    queue.mark(everything)
    waiting, claims = set(everything), 0
    most = 60 * len(everything) // count
    while waiting:
        claims += 1
        assert claims <= most, f"{sorted(waiting)} still wait after {claims} claims of {count}"
        claim = queue.claim("me", count).claim
        waiting -= set(claim.members)
        queue.mark(claim.members)
        queue.complete(claim)


@pytest.mark.parametrize("cursor", ["0", "5", "123456789", str(2**63), str(2**64 - 1), "9" * 30, "-1", "x", ""])
def test_a_foreign_cursor_does_no_harm(cursor: str, redis: Redis, roomy: Roomy) -> None:
    queue, _ = roomy
    everything = members(300)
    queue.mark(everything)
    redis.set(CURSOR, cursor)
    assert sorted(claimed_until_empty(queue, PAGE, "me")) == sorted(everything)
    assert whole_redis(redis)["cursor"].isdecimal()


def test_the_last_members_of_a_formerly_long_queue_are_claimed(redis: Redis, roomy: Roomy) -> None:
    """A scan of an empty part of the table may find no member; then members are popped."""
    queue, _ = roomy
    queue.mark(members(5000))
    redis.srem(PREFIX + "queue:v2", *members(4990))
    taken = [queue.claim("me", 1).claim.members for _ in range(10)]
    assert sorted(taken) == sorted((member,) for member in members(10, start=4991))


def test_a_page_is_cut_to_the_requested_number_and_no_member_is_lost(redis: Redis, roomy: Roomy) -> None:
    """Since Redis 7.2 a short set is a list, which SSCAN answers whole."""
    queue, _ = roomy
    with suppress(ResponseError):  # Redis 7.0 has no such lists
        redis.config_set("set-max-listpack-entries", 128)
    everything = members(100)
    queue.mark(everything)
    assert redis.object("ENCODING", PREFIX + "queue:v2") in (b"listpack", b"hashtable")
    assert sorted(claimed_until_empty(queue, 3, "me")) == sorted(everything)


@pytest.mark.parametrize("others", [6, 9], ids=["all the room", "more than the room"])
def test_a_claim_ends_with_the_page_after_which_others_took_the_room(
    others: int, redis: Redis, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "PAGE", 2)
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
