"""Beside an old release, and not attached to its database, with the users of deploy/attach: all works."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.queue.keys import HARBORS_KEY, HARBORS_PATTERN, HARBORS_SET, SEEDS_KEY
from tests import servers
from tests.faults.cluster import Cluster
from tests.harbor.restricted import address, give_rights
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import drifted
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    """Queue and broker are on one Redis, with a user for each."""
    users = {"REDIS_URL": give_rights("redis.acl", redis), "CELERY_BROKER_URL": give_rights("broker.acl", redis)}
    redis.acl_log_reset()
    cluster = Cluster(database, tmp_path)
    cluster.env |= {name: address(servers.redis, user) for name, user in users.items()}
    yield cluster
    cluster.end()
    redis.acl_deluser(*users.values())


def refused(redis: Redis) -> list[tuple[str, str]]:
    return [(one["reason"], one["object"]) for one in redis.acl_log()]


def wrong() -> set[str]:
    return set(Execution.objects.values_list("status", flat=True)) - {"Success"}


@pytest.mark.parametrize("strategy", ["claim", "scan", "lock"])
def test_workers_refresh_what_harbors_keys_name(cluster: Cluster, redis: Redis, strategy: str) -> None:
    """Reconcile is far away, so the marks alone bring the status."""
    for form in (HARBORS_KEY, SEEDS_KEY):
        redis.set(form % (drifted().pk, "TEST"), "")
    if strategy == "claim":
        redis.sadd(HARBORS_SET, f"{drifted().pk}:TEST")
    cluster.env["REFRESH_STRATEGY"] = strategy
    cluster.every["Reconcile"] = 3600
    cluster.worker(concurrency=1)
    cluster.beat()
    wait_for(lambda: not wrong(), "the executions to be refreshed", log=cluster.members[0].log)
    wait_for(lambda: not redis.keys(HARBORS_PATTERN), "the marks to be gone")
    assert refused(redis) == []
