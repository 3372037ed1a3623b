"""Deliveries are tested with receivers on 127.0.0.1, which is allowed here, and nothing else is."""

from collections.abc import Callable, Iterator

import pytest

from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.news import handlers as registry
from harbor_refresh.executions.news.deliveries import deliverer, subscriptions
from tests.integration.executions.deliveries.receiver import Receiver, receiver


@pytest.fixture(autouse=True)
def registered(loopback: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No handlers but those of the test."""
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture(autouse=True)
def a_run_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(deliverer, "RUN_SECONDS", 60.0)


@pytest.fixture
def good() -> Iterator[Receiver]:
    with receiver() as one:
        yield one


@pytest.fixture
def subscribed(database: str) -> Callable[..., Subscription]:
    """Subscribe a receiver."""

    def subscribe(one: Receiver | str, **wish: object) -> Subscription:
        url = one if isinstance(one, str) else one.url
        name = wish.pop("name", f"receiver {Subscription.objects.count() + 1}")
        return subscriptions.create(str(name), url, **wish)  # type: ignore[arg-type]

    return subscribe


@pytest.fixture
def deliver(database: str) -> Callable[[], None]:
    """Deliver what is due, in this thread."""
    return deliverer.deliver  # type: ignore[return-value]
