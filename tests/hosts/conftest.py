from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.faults.cluster import Cluster


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    """Programs of a project, which end with the test."""
    logs = tmp_path / "logs"
    logs.mkdir()
    cluster = Cluster(database, logs)
    yield cluster
    cluster.end()
