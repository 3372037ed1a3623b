"""Recovery while nodes come, take over, complete and come back: whom it asks, and who wins."""

from typing import Any

import pytest

from harbor_refresh.tasks.pipeline.recovery import release_stale
from harbor_refresh.tasks.queue import queue as queue_module
from harbor_refresh.tasks.queue.replies import Completed, Released
from tests.integration.queue.verb_cases import NOW, Faked, flight, put
from tests.integration.redis_state import PREFIX, Redis, sets_are_hash_tables, whole_redis


def scans(redis: Redis) -> int:
    info: Any = redis.info("commandstats")
    return int(info.get("cmdstat_sscan", {"calls": 0})["calls"])


def test_recovery_looks_who_is_alive_once_and_again_only_for_a_node_it_does_not_know(
    redis: Redis, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, _ = faked
    monkeypatch.setattr(queue_module, "TOKENS_PAGE", 20)
    put(redis, {"nodes": {"n1": NOW}} | flight(*(f"{number}:A:n1:{NOW}" for number in range(1, 1001))))
    look, looks = queue.stats, list[Any]()

    def looked() -> Any:
        looks.append(look())
        return looks[-1]

    queue.stats = looked  # type: ignore[method-assign]
    with sets_are_hash_tables(redis):
        before = scans(redis)
        assert release_stale(queue) == (Released(), ())
        assert scans(redis) - before > 10
        assert len(looks) == 1
        redis.sadd(PREFIX + "processing", f"1:A:dead:{NOW}")
        assert release_stale(queue) == (Released(1, ()), ())
    assert len(looks) == 3


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
    assert whole_redis(redis)["processing"] == {f"1:A:new:{NOW + 1}"}
    assert "attempts" not in whole_redis(redis)


def test_an_owner_that_completes_while_recovery_looks_at_its_claim_wins(redis: Redis, faked: Faked) -> None:
    queue, clock = faked
    queue.mark(["1:A"])
    claim = queue.claim("slow", 10).claim
    clock.move(301)
    pages = list(queue.pages_of_tokens())
    queue.pages_of_tokens = lambda: iter(pages)  # type: ignore[method-assign]
    assert queue.complete(claim).count == 1
    before = whole_redis(redis)
    assert release_stale(queue) == (Released(), ())
    assert whole_redis(redis) == before


def test_an_owner_that_comes_back_after_recovery_loses_and_the_member_is_refreshed_again(
    redis: Redis, faked: Faked
) -> None:
    queue, clock = faked
    queue.mark(["1:A"])
    claim = queue.claim("slow", 10).claim
    clock.move(301)
    release_stale(queue)
    again = queue.claim("other", 10).claim
    before = whole_redis(redis)
    assert queue.complete(claim) == Completed(0, 1, False)
    assert queue.fail(claim) == Released(0, ())
    assert whole_redis(redis) == before
    assert queue.complete(again).count == 1
