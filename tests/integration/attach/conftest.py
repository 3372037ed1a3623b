"""Tests on Harbor's tables. `database` is a database of Harbor's here, so that the fixtures above work on it."""

import pytest

from tests.harbor.fixtures import attached, attached_template

__all__ = ["attached", "attached_template", "database"]


@pytest.fixture
def database(attached: str) -> str:
    return attached
