"""The designs to choose from, for an installation of one instance and no grace."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from benchmarks.designs import STRATEGIES
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.tasks.conf import pacing
from tests.integration.strategies.marked_executions import OLD


@pytest.fixture(autouse=True)
def one_instance_without_grace(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pacing, "RECONCILE_GRACE_SECONDS", 0)
    settings.CORE_INSTANCE_ID, settings.CORE_INSTANCE_TOTAL = 0, 1
    yield
    crash_points.handlers.clear()


@pytest.fixture(params=sorted(STRATEGIES))
def any_strategy(request: pytest.FixtureRequest, settings: Settings) -> str:
    settings.REFRESH_STRATEGY = request.param
    return str(request.param)


@pytest.fixture(params=OLD)
def old_strategy(request: pytest.FixtureRequest, settings: Settings) -> str:
    settings.REFRESH_STRATEGY = request.param
    return str(request.param)


@pytest.fixture
def hashing(settings: Settings) -> Settings:
    settings.REFRESH_STRATEGY = "hash"
    settings.CORE_INSTANCE_TOTAL = 3
    return settings
