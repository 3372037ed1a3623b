"""Queue and broker behind Sentinel: the primary is killed in the middle, and the killed one comes back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.tasks.queue.connection import connect
from tests.elsewhere import uses
from tests.faults.cluster import Cluster
from tests.faults.takeovers import work_through_takeovers
from tests.sentinel import BehindSentinel, behind_sentinel

TIMES = 2


@pytest.fixture
def made(tmp_path: Path) -> Iterator[BehindSentinel]:
    with behind_sentinel(tmp_path) as made:
        yield made


@pytest.fixture
def redis(made: BehindSentinel) -> Iterator[Redis]:
    with connect(made.url, 5, tries=4) as client:
        yield client


@pytest.fixture
def env(made: BehindSentinel) -> Iterator[dict[str, str]]:
    with uses(made.url, made.url) as env:
        yield env


@pytest.mark.slow
def test_everything_holds_after_failovers_in_the_middle(
    cluster: Cluster, made: BehindSentinel, env: dict[str, str], log: Path, holds: Callable[..., None]
) -> None:
    """Each time the primary is killed while jobs and refreshes are under way, and while others are reported."""
    work_through_takeovers(
        TIMES,
        cluster,
        env,
        log,
        primary=made.primary,
        is_replaced=lambda killed: made.primary() is not killed,
        is_back=lambda _: made.is_whole(),
        holds=holds,
    )
