"""Tests on Harbor's tables. `database` is a database of Harbor's here, so that the fixtures above work on it."""

import pytest


@pytest.fixture
def database(attached: str) -> str:
    return attached
