"""The primary of the queue is killed again and again, in the middle of the work."""

from collections.abc import Callable
from pathlib import Path

from harbor_refresh.executions.models import Execution
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for


def work_through_takeovers(
    times: int,
    cluster: Cluster,
    env: dict[str, str],
    log: Path,
    *,
    primary: Callable[[], EmbeddedRedis],
    is_replaced: Callable[[EmbeddedRedis], bool],
    is_back: Callable[[EmbeddedRedis], bool],
    holds: Callable[..., None],
) -> None:
    """Each time the primary is killed while jobs and refreshes are under way, and while others are reported. It
    comes back as a replica of the new one. At the end nothing is lost, and no worker has ended."""
    env |= {"JOBS_LOG": str(log)}
    for name in ("one", "two"):
        cluster.worker(name, include=["tests.faults.jobs"], **env)
    cluster.beat(**env)
    ids = many(200 * times)
    for number in range(times):
        before = Execution.objects.filter(status="Success").count()
        part = ids[number * 200 : number * 200 + 200]
        start("SCAN", jobs=[team.copy.s(f"{number}-{one}", 0.1) for one in range(20)])
        succeed(part[:50])
        wait_for(lambda before=before: Execution.objects.filter(status="Success").count() > before, "a refresh")
        killed = primary()
        killed.kill()
        for first in range(50, 200, 10):
            succeed(part[first : first + 10])
        wait_for(lambda killed=killed: is_replaced(killed), "the failover")
        killed.start()
        wait_for(lambda killed=killed: is_back(killed), "the killed one to follow the new primary")
    holds()
    assert statuses() == {"Success": 200 * times + times}
    assert set(log.read_text().splitlines()) == {
        f"copy {number}-{one}" for number in range(times) for one in range(20)
    }
    assert not any(member.died() for member in cluster.members)
