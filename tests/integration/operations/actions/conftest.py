"""What tests of actions ask for: ranges of a few executions, so that a few executions are many jobs."""

import pytest

from harbor_refresh.executions.queries import chosen_pages


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_pages, "RANGE", 3)
