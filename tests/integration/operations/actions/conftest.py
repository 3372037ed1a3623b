"""What tests of actions ask for: pages of a few executions, so that a few executions are many pages."""

from dataclasses import replace

import pytest

from harbor_refresh.tasks.operations import bulk_slice
from harbor_refresh.tasks.operations.bulk_verbs import VERBS


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_slice, "VERBS", {name: replace(verb, page=3) for name, verb in VERBS.items()})
