"""What the pipeline is tested in: no grace, no rests, and on request no Redis, or a list of every signal."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.dispatch import Signal

from harbor_refresh.executions.news import signals as of_executions
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.redis_state import absent_redis


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "RECONCILE_GRACE_SECONDS", 0)


@pytest.fixture(autouse=True)
def no_heat(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is marked again is claimed again at once: rests have tests of their own (test_heat.py)."""
    monkeypatch.setattr(pacing, "LONGEST_REST_SECONDS", 0)
    execution_queue.cache_clear()
    yield
    execution_queue.cache_clear()


@pytest.fixture
def redis_down(monkeypatch: pytest.MonkeyPatch) -> None:
    client = absent_redis()
    down = ExecutionQueue(refresh_settings(), client, client)
    for module in (
        "pipeline.dispatcher",
        "pipeline.refresher",
        "pipeline.recovery",
        "pipeline.wakeup",
        "strategies.current",
    ):
        monkeypatch.setattr(f"harbor_refresh.tasks.{module}.execution_queue", lambda: down)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Every signal that is sent, by its name; and as `woken` each tick that is sent or will be."""
    heard: list[tuple[str, dict[str, Any]]] = []

    def later(seconds: float, *, ignore_pending_wake: bool = False) -> None:
        heard.append(("woken", {"delay": seconds} | ({"anyway": True} if ignore_pending_wake else {})))

    monkeypatch.setattr(wakeup, "send_tick", lambda: heard.append(("woken", {})))
    monkeypatch.setattr(wakeup, "check_later", later)
    listeners = []
    for name, one in (vars(of_executions) | vars(signals)).items():
        if isinstance(one, Signal):

            def listen(sender: Any, signal: Any, name: str = name, **values: Any) -> None:
                heard.append((name, values))

            one.connect(listen, weak=False)
            listeners.append((one, listen))
    yield heard
    for one, listen in listeners:
        one.disconnect(listen)
