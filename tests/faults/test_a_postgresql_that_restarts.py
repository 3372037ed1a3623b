"""PostgreSQL goes down with work queued. The work waits, quietly."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from django.db import connection
from redis import Redis

from harbor_refresh.executions.models import Quarantine
from tests import servers
from tests.faults.cluster import Cluster, set_intervals
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for


def commands(redis: Redis) -> int:
    info = cast("dict[str, Any]", redis.info("commandstats"))
    return sum(command["calls"] for name, command in info.items() if name != "cmdstat_info")


def commands_in(seconds: float, redis: Redis) -> int:
    before = commands(redis)
    time.sleep(seconds)  # a rate is measured over time
    return commands(redis) - before


@pytest.mark.slow
def test_an_immediate_restart_with_thousands_queued_makes_no_hot_loop(
    cluster: Cluster, holds: Callable[..., None], redis: Redis
) -> None:
    ids = many(3_000)
    succeed(ids)
    connection.close()
    servers.postgres.kill()
    cluster.worker("one")
    cluster.worker("two")
    down = commands_in(5, redis)
    servers.postgres.start()
    cluster.beat()
    holds()
    assert statuses() == {"Success": 3_000}
    assert not Quarantine.objects.exists(), "a database that is down counts as a failure of an execution"
    at_rest: list[int] = []

    def is_about_the_same() -> bool:
        """Nearly all are heartbeats. Of a time in which the workers stood still nothing is learned."""
        at_rest.append(commands_in(5, redis))
        return down < 2 * at_rest[-1]

    try:
        wait_for(is_about_the_same, "as many commands at rest", seconds=60)
    except AssertionError:
        raise AssertionError(
            f"{down} Redis commands while the database was down, {at_rest} with nothing to do"
        ) from None


def test_a_restart_during_the_work_counts_no_attempt(
    cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    """All are marked before beat's first reconcile, which would mark what this process has not marked yet. A
    worker that stands still for seconds must not be taken for dead, because that would be an attempt."""
    ids = many(3_000)
    acted, go_on = tmp_path / "acted", tmp_path / "go on"
    halt = {"point": "deciding", "act": "wait", "skip": 5, "once": str(acted), "until": str(go_on)}
    worker = cluster.worker(
        sabotage=halt,
        HARBOR_REFRESH_TEST_CHUNK="20",
        REFRESH_MAX_ATTEMPTS="1",
        HARBOR_REFRESH_TEST_NODE_TTL_SECONDS="60",
    )
    succeed(ids)
    cluster.beat()
    wait_for(acted.exists, "the work to be in full swing", log=worker.log)
    connection.close()
    servers.postgres.kill()
    servers.postgres.start()
    go_on.touch()
    holds()
    assert statuses() == {"Success": 3_000}
    assert not Quarantine.objects.exists()
    cluster.says("The database is down")
    assert "Reconcile found" not in worker.text(), "released members were lost"


@pytest.mark.slow
def test_a_beat_that_starts_while_the_database_is_down_waits_for_it(
    cluster: Cluster, holds: Callable[..., None]
) -> None:
    ids = many(20)
    set_intervals(cluster.env["DATABASE_URL"], cluster.every)
    cluster.every = {}  # no row can be written while the database is down
    connection.close()
    servers.postgres.kill()
    beat = cluster.beat()
    wait_for(lambda: "Beat waits for its schedule: PostgreSQL" in beat.text() or beat.died(), "beat to wait")
    assert not beat.died(), beat.text()
    servers.postgres.start()
    cluster.worker()
    succeed(ids)
    wait_for(lambda: "Sending due task" in beat.text(), "beat to send its ticks", log=beat.log)
    assert beat.text().count("Beat waits for its schedule") == 1
    holds()
