"""Queue and broker behind Sentinel: the primary is killed in the middle, and the killed one comes back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.queue.connection import connect
from tests.elsewhere import uses
from tests.faults import jobs as team
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.sentinel import BehindSentinel, behind_sentinel
from tests.waiting import wait_for

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
    """Each time the primary is killed while jobs and refreshes are under way, and while others are reported. It
    comes back as a replica of the new one. At the end nothing is lost, and no worker has ended."""
    env |= {"JOBS_LOG": str(log)}
    for name in ("one", "two"):
        cluster.worker(name, include=["tests.faults.jobs"], **env)
    cluster.beat(**env)
    ids = many(200 * TIMES)
    for number in range(TIMES):
        before = Execution.objects.filter(status="Success").count()
        part = ids[number * 200 : number * 200 + 200]
        start("SCAN", jobs=[team.copy.s(f"{number}-{one}", 0.1) for one in range(20)])
        succeed(part[:50])
        wait_for(lambda before=before: Execution.objects.filter(status="Success").count() > before, "a refresh")
        killed = made.primary()
        killed.kill()
        for first in range(50, 200, 10):
            succeed(part[first : first + 10])
        wait_for(lambda killed=killed: made.primary() is not killed, "the failover")
        killed.start()
        wait_for(made.is_whole, "the killed one to follow the new primary")
    holds()
    assert statuses() == {"Success": 200 * TIMES + TIMES}
    assert set(log.read_text().splitlines()) == {
        f"copy {number}-{one}" for number in range(TIMES) for one in range(20)
    }
    assert not any(member.died() for member in cluster.members)
