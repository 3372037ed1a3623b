"""The claiming design, as any other: a cycle without Celery, and ticks that go to one node alone."""

import pytest
from pytest_django import Settings

from benchmarks.designs import STRATEGIES, strategy
from harbor_refresh.tasks.celery_tasks import claim_batch
from tests.integration.concurrency import statement_held_open
from tests.integration.redis_state import Redis
from tests.integration.strategies.marked_executions import OLD, marked, rested, statuses

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_node_without_celery_drains_the_queue_and_ends_at_what_others_have_locked(
    settings: Settings, redis: Redis
) -> None:
    settings.REFRESH_STRATEGY = "claim"
    ids = marked(40)
    with statement_held_open("SELECT FROM execution WHERE id = %s FOR UPDATE", [ids[0]]):
        outcome = strategy().cycle()
    assert outcome.succeeded >= 39
    assert strategy().backlog() == 1
    rested(redis)
    assert strategy().cycle().succeeded == 1
    assert statuses(ids) == {"Success"}


def test_a_tick_of_the_claiming_design_sends_nothing_to_everybody(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr("harbor_refresh.tasks.celery_tasks.broadcast", lambda: sent.append("cycle"))
    for name in STRATEGIES:
        settings.REFRESH_STRATEGY = name
        claim_batch()
    assert len(sent) == len(OLD)
