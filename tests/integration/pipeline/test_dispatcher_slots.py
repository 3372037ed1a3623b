"""How many messages may wait for workers: a tick fills the slots there are and gives the rest back."""

from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.conf.pacing import GATHERING_SECONDS, SLOTS
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.recovery import recover
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.node import this_node
from tests.created import create_many
from tests.integration.database_state import rows
from tests.integration.pipeline.pipeline_state import marked, member, names
from tests.integration.redis_state import Redis, whole_redis

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.mark.parametrize(("at_once", "total"), [(10, SLOTS), (30, 30 * SLOTS)])
def test_messages_that_no_worker_takes_do_not_pile_up_however_many_ticks_come(
    at_once: int, total: int, redis: Redis
) -> None:
    queue = execution_queue()
    published: list[Any] = []
    for turn in range(200):
        queue.mark(f"{turn * at_once + number}:A" for number in range(1, at_once + 1))
        dispatch(published.extend, len(published))
        assert len(published) <= SLOTS
    assert (len(published), sum(map(len, published))) == (SLOTS, total)
    state = whole_redis(redis)
    flying = {text for claim in published for text in claim.members}
    assert {text.rsplit(":", 2)[0] for text in state["processing"]} == flying
    assert state["queue:v2"] == {f"{number}:A" for number in range(1, 200 * at_once + 1)} - flying
    assert "attempts" not in state


@pytest.mark.parametrize("waiting", [32, 33, 1000])
def test_with_enough_messages_waiting_nothing_is_claimed(waiting: int, redis: Redis, told: list[Any]) -> None:
    execution_queue().mark(["1:A", "2:A"])
    published: list[Any] = []
    assert dispatch(published.extend, waiting) == 0
    assert (published, told) == ([], [])
    assert whole_redis(redis) == {"queue:v2": {"1:A", "2:A"}}


def test_members_claimed_beyond_the_last_slot_are_released_without_an_attempt(
    redis: Redis, told: list[Any]
) -> None:
    execution_queue().mark(f"{number}:A" for number in range(1, 11))
    redis.hset(execution_queue().keys.attempts, "1:A", 2)
    published: list[Any] = []
    assert dispatch(published.extend, 29) == 3
    assert [len(claim) for claim in published] == [1, 1, 1]
    assert told == [("claimed", {"count": 3}), ("woken", {"delay": GATHERING_SECONDS})]
    flying = {text for claim in published for text in claim.members}
    state = whole_redis(redis)
    assert state["queue:v2"] == {f"{number}:A" for number in range(1, 11)} - flying
    assert {text.rsplit(":", 2)[0] for text in state["processing"]} == flying
    assert state["attempts"] == {"1:A": "2"}


def test_a_long_queue_fills_the_slots_of_all_live_nodes_batch_after_batch(
    settings: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "DEPTH", 20)
    monkeypatch.setattr(pacing, "CHUNK", 1)
    queue = execution_queue()
    for node in (this_node.name, "a", "b"):
        queue.heartbeat(node)
    queue.mark(f"{number}:A" for number in range(1, 101))
    batches: list[Any] = []
    assert dispatch(batches.append, 1, together=7) == 59
    assert [len(batch) for batch in batches] == [7] * 8 + [3]
    assert len(whole_redis(redis)["queue:v2"]) == 41
    assert not redis.exists(queue.keys.wake), "the tick has made its last claim, so another tick may be sent"


def test_a_tick_that_found_no_slot_does_not_block_the_next_tick(redis: Redis) -> None:
    """The tick that was sent has run; the process that empties the broker must be able to send another."""
    execution_queue().mark(["1:A"])
    assert redis.exists(execution_queue().keys.wake)
    dispatch(lambda claims: None, SLOTS)
    assert not redis.exists(execution_queue().keys.wake)


@pytest.mark.parametrize("way", ["silent", "waits"])
def test_messages_that_no_worker_takes_cause_no_quarantine(
    way: str, redis: Redis, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = execution_queue()
    everything = {member(one) for one in create_many([NewExecution("TEST", tasks=[NewTask()])] * 10)}
    queue.mark(everything)
    if way == "waits":
        monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 0.0)
    for _ in range(3 * refresh_settings().max_attempts):
        assert dispatch(lambda claims: None, 0) == 10
        if way == "silent":
            redis.delete(queue.keys.nodes)
        assert recover(idle=way == "waits") == 10
        assert marked(redis) == everything
        assert not {"processing", "attempts"} & set(whole_redis(redis))
    assert rows(Quarantine) == {}
    assert "quarantined" not in names(told)
