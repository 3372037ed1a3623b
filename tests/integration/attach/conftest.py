"""Tests on Harbor's tables. `database` is a database of Harbor's here, so that the fixtures above work on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.faults.cluster import Cluster
from tests.harbor.databases import ATTACHED


@pytest.fixture
def database(attached: str) -> str:
    return attached


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(database, tmp_path)
    cluster.env |= ATTACHED
    yield cluster
    cluster.end()
