"""SIGTERM of a worker under load, as an orchestrator sends it: to the worker's first process alone. It finishes
what it works on and gives back the rest. Nothing waits for the stale limit, for the broker's visibility timeout or
for the silence of a node, which are an hour, five minutes and one minute here."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.models import Quarantine, StatusChange
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.queue import execution_queue
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.variants import variants
from tests.waiting import wait_for

#: The most executions, because the check of the invariants compares all of them.
MOST = 4_000
PATIENCE = {"REFRESH_VISIBILITY_TIMEOUT_SECONDS": "300", "HARBOR_REFRESH_TEST_NODE_TTL_SECONDS": "60"}


def begins_to_end(worker: Member) -> None:
    os.kill(worker.process.pid, signal.SIGTERM)
    wait_for(lambda: "Warm shutdown" in worker.text(), "the warm shutdown to begin", log=worker.log)


def ends(worker: Member) -> None:
    wait_for(worker.died, "the worker to end", log=worker.log)
    assert worker.process.returncode == 0, worker.text()


def in_progress() -> list[str]:
    """The nodes that work on a claim."""
    return [token.node for token in execution_queue().tokens() if not token.is_waiting]


@pytest.mark.slow
@pytest.mark.parametrize("point", variants("deciding", "claimed", "committed"))
def test_a_worker_that_is_told_to_end_completes_its_claim_and_leaves_the_rest_to_the_next(
    point: str, cluster: Cluster, redis: Redis, holds: Callable[..., None], tmp_path: Path
) -> None:
    reached, go_on = tmp_path / "reached", tmp_path / "go on"
    ids = many(3_000)
    leaver = cluster.worker(
        "leaver",
        sabotage={"point": point, "act": "wait", "once": str(reached), "until": str(go_on)},
        **PATIENCE,
    )
    succeed(ids)
    wait_for(reached.exists, f"a claim to be at {point}", log=leaver.log)
    begins_to_end(leaver)
    late = many(500)
    succeed(late)
    go_on.touch()
    ends(leaver)
    assert in_progress() == []
    assert redis.hlen("unacked") == 0
    cluster.worker("heir", **PATIENCE)
    cluster.beat(**PATIENCE)
    holds()
    assert statuses() == {"Success": 3_500}
    assert StatusChange.objects.count() == 3_500
    assert not Quarantine.objects.exists()


@pytest.mark.slow
def test_workers_that_are_replaced_one_after_another_under_load_leave_nothing_behind(
    cluster: Cluster, worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    """A rolling update, while executions are reported and jobs run: their messages and claims are everywhere."""
    cluster.beat(**PATIENCE)
    working = [worker("old1", **PATIENCE), worker("old2", **PATIENCE)]
    start("REPLICATION", jobs=[team.copy.s(f"job{number}", 0.05) for number in range(400)])
    reported = 0
    for number in range(4):
        working.append(worker(f"new{number}", **PATIENCE))
        leaver = working.pop(0)
        os.kill(leaver.process.pid, signal.SIGTERM)
        while reported < 300 * (number + 1) or (not leaver.died() and reported < MOST):
            succeed(many(50))
            reported += 50
        wait_for(leaver.died, "the worker to end", log=leaver.log)
        assert leaver.process.returncode == 0, leaver.text()
    wait_for(lambda: log.read_text().count("copy job") >= 400, "the jobs to run")
    holds()
    assert statuses() == {"Success": reported + 1}
    assert not Quarantine.objects.exists()
    ran = log.read_text().splitlines()
    assert (len(ran), len(set(ran))) == (400, 400), "no job was lost or ran twice"
