"""recover, check: what dead nodes leave is given back, with a tick for it, or quarantined."""

import logging
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle import gates
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.tasks import celery_tasks
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.operations import delivery_runs
from harbor_refresh.tasks.pipeline.recovery import recover
from harbor_refresh.tasks.pipeline.wakeup import check
from harbor_refresh.tasks.queue import execution_queue
from tests.integration.pipeline.pipeline_state import marked, member, names
from tests.integration.redis_state import Redis, signs_of_life_come, whole_redis
from tests.integration.sample_executions import made

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_recovery_releases_the_claims_of_a_dead_node_and_sends_a_tick(
    redis: Redis, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    execution_queue().claim("dead", 10)
    redis.zrem(execution_queue().keys.nodes, "dead")
    told.clear()
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert recover() == 1
        assert recover() == 0
    assert names(told) == ["recovered", "woken", "woken"]
    assert [one.getMessage() for one in caplog.records] == ["Recovered 1 stale executions from crashed instances"]
    assert marked(redis) == {member(execution)}


def test_recovery_sends_no_tick_if_no_member_waits(told: list[Any]) -> None:
    recover()
    assert names(told) == []


def test_recovery_sends_a_tick_even_if_one_seems_to_be_on_its_way(redis: Redis, told: list[Any]) -> None:
    """It may have died with its worker."""
    queue = execution_queue()
    queue.mark(["1:A"])
    queue.claim("dead", 10)
    redis.delete(queue.keys.nodes)
    seen = []
    for wake in ("1", "1", None):
        if wake:
            redis.set(queue.keys.wake, wake, px=60_000)
        told.clear()
        seen.append((recover(), names(told)))
    assert seen == [(1, ["recovered", "woken"]), (0, ["woken"]), (0, ["woken"])]
    assert marked(redis) == {"1:A"}


@pytest.mark.parametrize("name", ["claim", "scan", "lock", "hash", "upstream"])
def test_only_the_strategy_claim_checks_for_waiting_work(name: str, settings: Settings, told: list[Any]) -> None:
    settings.REFRESH_STRATEGY = name
    execution_queue().mark(["1:A"])
    execution_queue().tick_has_ended()
    check()
    assert told == ([("woken", {})] if name == "claim" else [])


def test_recovery_quarantines_an_execution_that_kills_its_process_every_time(redis: Redis) -> None:
    _, tasks = made(1)
    report([Report(tasks[0], "Success")])
    signs_of_life_come(redis, since=1, heard=execution_queue().stats().now)
    for _ in range(refresh_settings().max_attempts):
        assert not Quarantine.objects.exists()
        claim = execution_queue().claim("alive", 10).claim
        assert len(execution_queue().take_over(claim, "dead")) == 1
        redis.zrem(execution_queue().keys.nodes, "dead")
        assert recover() == 1
    assert Quarantine.objects.get().reason == "the process that refreshed it died or never ended"
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))


def test_what_fails_in_recovery_holds_up_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fails() -> None:
        calls.append("gates")
        raise ValueError("a fault of one of them")

    monkeypatch.setattr(gates, "close_overdue", fails)
    monkeypatch.setattr(delivery_runs, "recover", lambda: calls.append("deliveries"))
    with pytest.raises(ValueError, match="a fault of one of them"):
        celery_tasks.recover_stale()
    assert calls == ["gates", "deliveries"]
