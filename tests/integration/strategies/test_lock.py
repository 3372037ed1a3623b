"""The design with a lock: one instance works a cycle, and a lock that is lost ends it."""

import threading
import time

import pytest
from pytest_django import Settings
from redis.lock import Lock

from benchmarks.designs import strategy
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.strategies import exclusion
from tests.integration.concurrency import Pause, in_background, wait_until
from tests.integration.redis_state import Redis
from tests.integration.strategies.marked_executions import LOCK, marked

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture
def locking(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """No lock ends by itself while a test stands still: its ttl is long, and its renewals come often."""
    settings.REFRESH_STRATEGY = "lock"
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    monkeypatch.setattr(pacing, "HEARTBEAT_SECONDS", 0.1)
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 20
    return settings


def attempts(redis: Redis) -> int:
    """How often a process has tried to take the lock, which is one SET."""
    return int(redis.info("commandstats")["cmdstat_set"]["calls"])


def test_while_one_instance_works_a_cycle_the_others_wait_and_then_find_nothing(
    locking: Settings, redis: Redis
) -> None:
    ids = marked(20)
    with Pause("one") as pause, in_background(strategy().cycle) as first:
        pause.wait_until_reached()
        before = attempts(redis)
        with in_background(strategy().cycle) as second:
            wait_until(lambda: attempts(redis) > before + 1, "the second to try twice")
            assert set(Execution.objects.values_list("revision", flat=True)) == {0}
            pause.go_on.set()
            assert (first().succeeded, second().succeeded) == (20, 0)
    assert set(Execution.objects.filter(pk__in=ids).values_list("revision", flat=True)) == {1}


def test_the_lock_is_renewed_for_as_long_as_the_cycle_runs(locking: Settings, redis: Redis) -> None:
    marked(2)
    with Pause("one") as pause, in_background(strategy().cycle) as outcome:
        pause.wait_until_reached()
        token = redis.get(LOCK)
        for _ in range(3):
            redis.pexpire(LOCK, 30_000)
            wait_until(lambda: redis.pttl(LOCK) > 30_000, "the next renewal")
            assert redis.get(LOCK) == token is not None
            assert redis.pttl(LOCK) <= 60_000
        pause.go_on.set()
        assert outcome().succeeded == 2
    assert redis.get(LOCK) is None


def test_who_holds_a_lock_that_is_anothers_by_now_stops_at_the_next_execution_and_frees_nothing(
    locking: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    marked(5)
    with Pause("one") as pause, in_background(strategy().cycle) as outcome:
        pause.wait_until_reached()
        redis.set(LOCK, "another's")
        wait_until(lambda: all(one.name != "lock" for one in threading.enumerate()), "a refused renewal")
        pause.go_on.set()
        assert outcome().succeeded == 1
    assert redis.get(LOCK) == b"another's"
    assert strategy().backlog() == 4
    assert "Lost the lock in the middle of a cycle" in caplog.text


@pytest.mark.parametrize(("down", "succeeded"), [(1, 5), (60, 1)])
def test_a_lock_that_cannot_be_renewed_stays_for_the_time_that_was_granted(
    locking: Settings, monkeypatch: pytest.MonkeyPatch, down: float, succeeded: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise QueueUnavailable("Redis: no answer")

    marked(5)
    now = [1_000.0]
    monkeypatch.setattr(exclusion, "monotonic", lambda: now[0])
    with Pause("one") as pause, in_background(strategy().cycle) as outcome:
        pause.wait_until_reached()
        monkeypatch.setattr(Lock, "extend", fail)
        now[0] += down
        pause.go_on.set()
        assert outcome().succeeded == succeeded
    assert strategy().backlog() == 5 - succeeded


def test_nobody_waits_for_the_lock_longer_than_an_interval(locking: Settings, redis: Redis) -> None:
    locking.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0.3
    marked(3)
    redis.set(LOCK, "somebody's")
    began = time.monotonic()
    assert strategy().cycle().succeeded == 0
    assert 0.1 < time.monotonic() - began < 20, "it waited for the interval of the fixture"
    assert redis.get(LOCK) == b"somebody's"
