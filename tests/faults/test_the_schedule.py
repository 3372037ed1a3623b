"""Ticks: too many, too few, and from several beats."""

import time
from collections.abc import Callable

import pytest
from redis import Redis

from harbor_refresh.executions.models import StatusChange
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for


@pytest.mark.slow
def test_workers_away_for_ten_tick_intervals_find_no_pile_of_ticks(
    cluster: Cluster, holds: Callable[..., None], redis: Redis
) -> None:
    beat = cluster.beat()
    ids = many(200)
    succeed(ids)
    wait_for(
        lambda: beat.text().count("tasks.claim_batch") >= 10,
        "ten ticks to come due",
        log=beat.log,
    )
    assert redis.llen("harbor_refresh.ticks") <= 4
    assert redis.llen("harbor_refresh") == 0
    begun = time.monotonic()
    worker = cluster.worker()
    holds()
    assert statuses() == {"Success": 200}
    received = worker.text().count("Task tasks.claim_batch")
    # each tick has two lines, and one comes due each second
    assert received <= 20 + 2 * (time.monotonic() - begun), "old ticks were run"


@pytest.mark.slow
def test_three_beats_do_no_more_than_one(cluster: Cluster, holds: Callable[..., None]) -> None:
    worker = cluster.worker()
    for _ in range(3):
        cluster.beat()
    ids = many(3_000)
    succeed(ids)
    holds()
    assert statuses() == {"Success": 3_000}
    assert StatusChange.objects.count() == 3_000
    ticks = worker.text().count("Task tasks.claim_batch")
    wait_for(
        lambda: worker.text().count("Task tasks.claim_batch") >= ticks + 3,
        "three more ticks",
        log=worker.log,
    )
    holds()
    assert StatusChange.objects.count() == 3_000
