"""dispatch: what a tick claims and publishes, when it looks again, and what it does if it cannot publish."""

from typing import Any

import pytest

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.conf.pacing import GATHERING_SECONDS
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.pipeline.pipeline_state import marked, names
from tests.integration.redis_state import Redis, whole_redis

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_tick_claims_until_the_workers_have_enough(redis: Redis) -> None:
    execution_queue().mark(f"{number}:A" for number in range(1, 40_001))
    published: list[int] = []
    total = dispatch(lambda claims: published.extend(map(len, claims)), 0)
    assert total == sum(published) == execution_queue().share == 18_000
    assert redis.scard(execution_queue().keys.queue) == 40_000 - total
    assert published == [6000, 6000, 6000]
    assert "wake" not in whole_redis(redis), "completing the last of them must send a tick"


def test_a_tick_that_finds_only_resting_members_returns_how_long_they_rest(
    redis: Redis, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "LONGEST_REST_SECONDS", 60)
    execution_queue.cache_clear()
    queue = execution_queue()
    published: list[Any] = []
    for count in (1, 0, 0):
        queue.mark(["1:A"])
        assert dispatch(published.extend, 0) == count
        redis.hset(queue.keys.heat, "1:A", f"20:{queue.stats().now}")
    assert names(told) == ["claimed"] + ["woken"] * 5
    delays = [values["delay"] for name, values in told if name == "woken"]
    assert [delays[n] for n in (0, 1, 3)] == [GATHERING_SECONDS] * 3
    assert all(50 < delays[n] <= 60 for n in (2, 4))
    assert marked(redis) == {"1:A"}
    queue.mark(["2:B"])
    assert dispatch(published.extend, 0) == 1
    assert [claim.members for claim in published] == [("1:A",), ("2:B",)]
    assert names(told[6:]) == ["claimed", "woken", "woken"]


def test_the_key_wake_of_a_long_queue_is_deleted_before_the_last_chunks_are_handed_out(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that completes one of the last chunks must be able to send the next tick; one that completes an
    earlier chunk must not. Each claim is split in order, so that a chunk's executions are neighbours."""
    monkeypatch.setattr(pacing, "CHUNK", 100)
    queue = execution_queue()
    monkeypatch.setattr(queue, "conf", refresh_settings())
    for node in "abcd":
        queue.heartbeat(node)
    queue.mark(f"{number}:A" for number in range(10_000, 13_000))
    published: list[list[Any]] = []
    wakes: list[bool] = []

    def publish(claims: Any) -> None:
        published.append(list(claims))
        wakes.append(bool(redis.exists(queue.keys.wake)))

    assert dispatch(publish, 0) == 1500
    assert [list(map(len, claims)) for claims in published] == [[100] * 6, [100] * 6, [100] * 3]
    assert wakes == [True, True, False]
    for claims in published:
        ids = [one for claim in claims for one in claim.ids]
        assert ids == sorted(ids)


def test_a_claim_that_cannot_be_published_is_released_without_an_attempt(redis: Redis) -> None:
    execution_queue().mark(["1:A", "2:A"])

    def refuse(claims: Any) -> None:
        raise ConnectionError("no broker")

    with pytest.raises(ConnectionError, match="no broker"):
        dispatch(refuse, 0)
    assert {k: v for k, v in whole_redis(redis).items() if k in ("queue:v2", "processing", "attempts")} == {
        "queue:v2": {"1:A", "2:A"}
    }


def test_a_claim_that_can_be_neither_published_nor_released_renews_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Redis went down in between: the claim keeps the old name, and recovery notices that name's silence."""
    execution_queue().mark(["1:A"])
    before = this_node.name

    def refuse(*_: Any, **__: Any) -> None:
        raise QueueUnavailable

    monkeypatch.setattr(ExecutionQueue, "release", refuse)
    with pytest.raises((QueueUnavailable, ConnectionError)):
        dispatch(refuse, 0)
    assert this_node.name != before


def test_with_redis_down_dispatch_and_refresh_say_so_and_the_node_is_renewed(
    redis_down: None,
) -> None:
    from harbor_refresh.tasks.queue.claim import Claim

    for verb in (
        lambda: dispatch(lambda claims: None, 0),
        lambda: refresh_claim(Claim("n1", "7", ("1:A",))),
    ):
        before = this_node.name
        with pytest.raises(QueueUnavailable):
            verb()
        assert this_node.name != before
