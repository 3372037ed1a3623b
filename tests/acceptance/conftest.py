"""A cluster with the intervals of production: acceptance tests see what a user sees."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.faults.cluster import SHORT, Cluster


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(database, tmp_path)
    for name in SHORT:
        del cluster.env[name]
    cluster.every.clear()
    yield cluster
    cluster.end()
