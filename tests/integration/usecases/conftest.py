"""What the use cases are tested in: no grace, no rests, and on request no Redis, or an ear for every signal."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from executions import signals
from executions.conf import refresh_settings
from executions.queue import ExecutionQueue, execution_queue
from tests.integration.state import absent_redis


@pytest.fixture(autouse=True)
def no_grace(settings: Settings) -> None:
    settings.REFRESH_RECONCILE_GRACE_SECONDS = 0


@pytest.fixture(autouse=True)
def no_heat(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is marked again is claimed again at once: rests have tests of their own (test_heat.py)."""
    monkeypatch.setattr(execution_queue(), "_rest_us", 0)


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> None:
    client = absent_redis()
    away = ExecutionQueue(refresh_settings(), client, client)
    for module in ("usecases.dispatching", "usecases.working", "usecases.recovering", "strategies.claim"):
        monkeypatch.setattr(f"executions.{module}.execution_queue", lambda: away)


@pytest.fixture
def told() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Every signal that is sent, by its name."""
    heard: list[tuple[str, dict[str, Any]]] = []
    listeners = []
    for name, one in vars(signals).items():
        if isinstance(one, signals.Signal):

            def listen(sender: Any, signal: Any, name: str = name, **values: Any) -> None:
                heard.append((name, values))

            one.connect(listen, weak=False)
            listeners.append((one, listen))
    yield heard
    for one, listen in listeners:
        one.disconnect(listen)
