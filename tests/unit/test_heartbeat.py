"""The heartbeat: silent nodes are recovered at once, and errors are logged."""

import os
import threading
from typing import Any

import pytest

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.celery_tasks import recover_stale
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.pipeline import heartbeat
from harbor_refresh.tasks.pipeline.per_process import PerProcess
from tests.waiting import wait_for


class Queue:
    """Answers each sign of life in turn, the last of them for ever."""

    def __init__(self, *answers: int | QueueUnavailable) -> None:
        self.answers = list(answers)
        self.beats: list[str] = []
        self.is_over = threading.Event()

    def heartbeat(self, node: str) -> int:
        answer = self.answers.pop(0) if self.answers else None
        self.beats.append(node)
        if not self.answers:
            self.is_over.set()
        assert answer is not None
        if isinstance(answer, QueueUnavailable):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "HEARTBEAT_SECONDS", 0.001)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """With what recovery was asked for."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(recover_stale, "apply_async", lambda **options: calls.append(options))
    return calls


def beaten(monkeypatch: pytest.MonkeyPatch, *answers: int | QueueUnavailable) -> Queue:
    queue = Queue(*answers)
    monkeypatch.setattr(heartbeat, "execution_queue", lambda: queue)
    heartbeat.send_until(queue.is_over)
    return queue


def test_a_heartbeat_that_finds_a_silent_node_asks_for_recovery_once(
    monkeypatch: pytest.MonkeyPatch, asked: list[dict[str, Any]]
) -> None:
    queue = beaten(monkeypatch, 0, 3, 0, 1, 0)
    assert (len(queue.beats), len(set(queue.beats))) == (5, 1)
    assert asked == [{"retry": False}] * 2


def test_a_redis_that_is_down_is_logged_once_for_each_outage(
    monkeypatch: pytest.MonkeyPatch,
    asked: list[dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = QueueUnavailable("Redis: gone")
    beaten(monkeypatch, 0, gone, gone, 1, gone, 0)
    assert len(asked) == 1
    assert [line.partition(" gives ")[2] for line in caplog.messages] == ["no sign of life: Redis: gone"] * 2, (
        "it is logged once for each outage"
    )


def test_a_broker_that_fails_is_logged_and_ends_no_heartbeat(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("no broker")

    monkeypatch.setattr(recover_stale, "apply_async", fail)
    queue = beaten(monkeypatch, 1, 0, 0)
    assert len(queue.beats) == 3
    assert caplog.messages == ["Could not ask for recovery, the schedule will in a few seconds: no broker"]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, asked: list[dict[str, Any]]) -> list[int]:
    """One item for each heartbeat that begins, in a process that has none yet."""
    found: list[int] = []
    monkeypatch.setattr(heartbeat, "of_this_process", PerProcess(heartbeat.Heartbeat))
    monkeypatch.setattr(heartbeat, "send_until", lambda _: found.append(1))
    return found


def test_a_process_has_one_heartbeat_however_often_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, begun: list[int]
) -> None:
    for _ in range(3):
        heartbeat.start()
    wait_for(lambda: begun, "the heartbeat")
    assert begun == [1]
    monkeypatch.setattr(os, "getpid", lambda: -1)
    heartbeat.start()
    wait_for(lambda: len(begun) == 2, "that of a child")


def test_a_program_that_calls_a_task_as_a_function_is_no_node(begun: list[int]) -> None:
    recover_stale.push_request(is_eager=True)
    heartbeat.start(task=recover_stale)
    recover_stale.pop_request()
    assert begun == []
    heartbeat.start(task=recover_stale)
    wait_for(lambda: begun, "the heartbeat of a worker that begins one")
