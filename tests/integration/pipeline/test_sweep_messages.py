"""`tasks.sweep`: one message works for a bounded time, and the next goes on at that place."""

import json
from base64 import b64decode
from datetime import UTC, datetime
from typing import Any

import pytest

from harbor_refresh.executions.lifecycle import retention
from harbor_refresh.executions.lifecycle.housekeeping import HOUSEKEEPING
from harbor_refresh.executions.lifecycle.lease import LEASE, Lease
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks import celery_tasks
from harbor_refresh.tasks.broker.celery_queues import TICKS
from tests.integration.concurrency import transaction_held_open
from tests.integration.executions.old_executions import ended
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is out of time only where a test says so, and not because the machine is slow."""
    monkeypatch.setattr(celery_tasks, "SWEEP_SECONDS", 600)


def sent(redis: Redis) -> list[Any]:
    """The arguments of each message that waits, the oldest first."""
    messages = [json.loads(raw) for raw in reversed(redis.lrange(TICKS, 0, -1))]
    assert {message["headers"]["task"] for message in messages} <= {"tasks.sweep"}
    return [json.loads(b64decode(message["body"]))[0] for message in messages]


def go_on(redis: Redis) -> None:
    """Take the one message that waits."""
    [rest] = sent(redis)
    redis.delete(TICKS)
    celery_tasks.sweep(*rest)


def test_a_sweep_with_time_left_ends_without_a_message(redis: Redis) -> None:
    ended(3)
    assert celery_tasks.sweep() == {"executions": 2}
    assert sent(redis) == []


def test_a_sweep_that_is_out_of_time_goes_on_in_another_message(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(celery_tasks, "SWEEP_SECONDS", 0)
    monkeypatch.setattr(retention, "BATCH", 4)
    ended(11)
    assert celery_tasks.sweep() == {"executions": 4}
    messages = 0
    while sent(redis):
        go_on(redis)
        messages += 1
        assert messages < 20
    assert Execution.objects.count() == 1
    other_steps = 1 + len(HOUSEKEEPING)
    assert messages == 3 + other_steps, "three batches, or pages, of executions and one of each other step"


def test_an_execution_that_stays_locked_does_not_hold_up_the_rest_however_slow_the_look_is(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(celery_tasks, "SWEEP_SECONDS", 0)
    monkeypatch.setattr(retention, "BATCH", 1)
    ended(4)
    first = Execution.objects.order_by("pk")[:1]
    with transaction_held_open(lambda: list(first.select_for_update())):
        celery_tasks.sweep()
        for _ in range(3):
            go_on(redis)
        assert Execution.objects.count() == 2


def test_the_rest_of_a_sweep_waits_for_the_lease_of_a_killed_one_and_a_first_message_does_not(
    redis: Redis,
) -> None:
    ended(3)
    lease = Lease("sweep")
    lease.take()
    celery_tasks.sweep()
    assert sent(redis) == []
    began = datetime.now(UTC)
    celery_tasks.sweep("executions", ["", 0, 0, 0])
    assert sent(redis) == [["executions", ["", 0, 0, 0]]]
    headers = json.loads(redis.lrange(TICKS, 0, 0)[0])["headers"]
    assert datetime.fromisoformat(headers["eta"]) > began + LEASE / 2
    lease.release()
    celery_tasks.sweep(*sent(redis)[0])
    assert Execution.objects.count() == 1


def test_it_goes_on_however_many_ticks_wait(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other ticks are not sent while some wait. The rest of a sweep would wait until the next day."""
    monkeypatch.setattr(celery_tasks, "SWEEP_SECONDS", 0)
    ended(3)
    for _ in range(20):
        celery_tasks.sweep.apply_async()
    waiting = len(sent(redis))
    assert waiting == celery_tasks.sweep.most_waiting
    celery_tasks.sweep()
    assert len(sent(redis)) == waiting + 1
