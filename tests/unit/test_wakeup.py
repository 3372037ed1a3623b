"""The wake-up: a tick at once, or a check later; a broker or Redis that is down fails no caller."""

import threading
from time import monotonic

import pytest

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.pipeline import wakeup
from tests.waiting import wait_for


def timers() -> list[threading.Timer]:
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When this process looked whether a tick is needed."""
    times: list[float] = []
    monkeypatch.setattr(wakeup, "check", lambda **_: times.append(monotonic()))
    return times


def test_every_planned_check_runs_at_its_time_and_with_its_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[bool, float]] = []
    monkeypatch.setattr(
        wakeup, "check", lambda *, ignore_pending_wake: made.append((ignore_pending_wake, monotonic()))
    )
    began = monotonic()
    plan = [(True, 0.1), (False, 0.2), (False, 0.3)]
    for anyway, delay in plan:
        wakeup.check_later(delay, ignore_pending_wake=anyway)
    wait_for(lambda: not timers(), "every look")
    assert sorted(anyway for anyway, _ in made) == [False, False, True]
    assert all(at - began >= min(delay for how, delay in plan if how == anyway) for anyway, at in made)


def test_one_check_that_ignores_a_pending_wake_is_planned_at_a_time(looks: list[float]) -> None:
    for number in (1, 2):
        for _ in range(16):
            wakeup.check_later(0.2, ignore_pending_wake=True)
        wait_for(lambda: not timers(), "the look")
        assert len(looks) == number


def test_a_process_does_not_wait_for_its_timers_to_end(looks: list[float]) -> None:
    for delay in (50, 60):
        wakeup.check_later(delay)
    assert [timer.daemon for timer in timers()] == [True, True]


def test_a_check_that_finds_no_redis_is_logged_and_raises_no_error(
    looks: list[float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: object) -> None:
        raise QueueUnavailable("no Redis")

    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with monkeypatch.context() as patched:
        patched.setattr(wakeup, "check", fail)
        wakeup.check_later(0.01)
        line = "Could not look whether work waits, the next tick of the schedule will do: no Redis"
        wait_for(lambda: line in caplog.messages, "the failure to be told")
        wait_for(lambda: not timers(), "its timer to end")
    assert raised == []
    wakeup.check_later(0.01)
    wait_for(lambda: looks, "the next look")


def test_a_worker_that_starts_asks_for_recovery_and_deliveries_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(wakeup, "send", calls.append)
    wakeup.send_first(sender=None)
    assert calls == ["tasks.recover_stale", "tasks.deliver"]
