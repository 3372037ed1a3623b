"""The wake-up: a tick at once, or one later, and a broker that is away costs nobody anything."""

import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from tasks import wakeup
from tasks.claim_batch import claim_batch
from tests.waiting import wait_for


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """When each tick was sent."""
    times: list[float] = []
    monkeypatch.setattr(wakeup, "_later", None)
    monkeypatch.setattr(claim_batch, "apply_async", lambda **_: times.append(monotonic()))
    yield times
    if wakeup._later:
        wakeup._later.cancel()
        wakeup._later.join()


def test_a_tick_without_a_delay_is_sent_at_once(sent: list[float]) -> None:
    wakeup.send_tick(signal=None, sender=None)
    wakeup.send_tick(delay=0.0)
    assert len(sent) == 2
    assert wakeup._later is None


def test_a_tick_with_a_delay_is_sent_after_it_and_not_before(sent: list[float]) -> None:
    began = monotonic()
    wakeup.send_tick(delay=0.1, signal=None, sender=None)
    assert sent == []
    wait_for(lambda: sent, "the tick to be sent", seconds=10)
    assert sent[0] - began >= 0.1


def test_of_ticks_that_come_later_a_process_has_one_at_a_time_the_soonest(sent: list[float]) -> None:
    before = threading.active_count()
    for delay in (60, 0.3, 60, 30, 0.3):
        wakeup.send_tick(delay=delay)
    wait_for(lambda: threading.active_count() == before + 1, "the later ones to be called off", seconds=10)
    wait_for(lambda: sent, "the tick to be sent", seconds=10)
    wait_for(lambda: threading.active_count() == before, "its timer to end", seconds=10)
    assert len(sent) == 1


def test_after_one_was_sent_another_may_come(sent: list[float]) -> None:
    for number in (1, 2, 3):
        wakeup.send_tick(delay=0.01)
        wait_for(lambda number=number: len(sent) == number, "the tick to be sent", seconds=10)
        assert wakeup._later is not None
        wakeup._later.join(10)


def test_one_that_comes_later_keeps_none_from_being_sent_at_once(sent: list[float]) -> None:
    wakeup.send_tick(delay=60)
    wakeup.send_tick()
    assert len(sent) == 1


def test_a_process_does_not_wait_for_its_timer_to_end(sent: list[float]) -> None:
    wakeup.send_tick(delay=60)
    assert wakeup._later is not None
    assert wakeup._later.daemon


@pytest.mark.parametrize("delay", [0.0, 0.01])
def test_a_broker_that_fails_raises_nothing_and_is_told(
    delay: float, sent: list[float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("no broker")

    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    monkeypatch.setattr(claim_batch, "apply_async", fail)
    wakeup.send_tick(delay=delay)
    line = "Could not wake a tick, the next one of the schedule will do: no broker"
    wait_for(lambda: line in caplog.messages, "the failure to be told", seconds=10)
    if wakeup._later:
        wakeup._later.join(10)
    assert raised == []
    monkeypatch.setattr(claim_batch, "apply_async", lambda **_: sent.append(monotonic()))
    wakeup.send_tick(delay=delay)
    wait_for(lambda: sent, "the next tick to be sent", seconds=10)
