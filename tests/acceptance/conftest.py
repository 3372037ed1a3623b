"""A cluster with the intervals of production: acceptance tests see what a user sees."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.distribution.conftest import environment, wheel
from tests.faults.cluster import SHORT, Cluster

__all__ = ["environment", "wheel"]


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(database, tmp_path)
    for name in SHORT:
        del cluster.env[name]
    yield cluster
    cluster.end()
