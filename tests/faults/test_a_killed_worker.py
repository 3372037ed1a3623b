"""A worker dies at a named point. Its claims are recovered, and another worker refreshes the executions."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from examples.simulation.invariants import violations
from harbor_refresh.executions.models import Quarantine, StatusChange
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.queue import execution_queue
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.variants import variants
from tests.waiting import wait_for


@pytest.mark.parametrize("point", variants("committed", "claimed", "deciding"))
def test_sigkill_of_the_whole_group_loses_nothing(
    point: str, cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    """(a) after the claim, before the fan-out; (b) before the commit; (c) after it, before completion."""
    ids = many(300)
    victim = cluster.worker(
        "victim",
        sabotage={"point": point, "act": "kill_group", "once": str(tmp_path / "acted")},
    )
    succeed(ids)
    wait_for(victim.died, f"the victim to die at {point}", log=victim.log)
    cluster.worker("heir")
    cluster.beat()
    holds()
    assert statuses() == {"Success": 300}
    assert StatusChange.objects.count() == 300
    cluster.says("stale executions from crashed instances")


def test_a_killed_pool_child_counts_one_attempt_and_loses_no_execution(
    cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    worker = cluster.worker(sabotage={"point": "deciding", "act": "kill_process", "once": str(tmp_path / "acted")})
    cluster.beat()
    ids = many(100)
    succeed(ids)
    wait_for((tmp_path / "acted").exists, "the child to be killed", log=worker.log)
    holds()
    assert not worker.died()
    assert statuses() == {"Success": 100}
    cluster.says("Recovered")


def test_a_worker_stopped_past_the_stale_limit_is_fenced_when_it_goes_on(
    cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    """It sleeps with its work committed and not completed: what it held has been done again meanwhile."""
    sleeper = cluster.worker(
        "sleeper",
        concurrency=1,
        sabotage={"point": "committed", "act": "stop_group", "once": str(tmp_path / "acted")},
        HARBOR_REFRESH_TEST_STALE_SECONDS="3",
    )
    ids = many(1)
    succeed(ids)
    wait_for((tmp_path / "acted").exists, "the worker to fall asleep", log=sleeper.log)
    cluster.worker("heir", HARBOR_REFRESH_TEST_STALE_SECONDS="3")
    cluster.beat()
    cluster.says("Recovered 1 stale executions")
    cluster.says("Refresh outdate execution status done, 1 succeed, 0 failed")
    sleeper.signal(signal.SIGCONT)
    wait_for(
        lambda: "had been recovered meanwhile: left alone" in sleeper.text(),
        "the late finisher to be fenced",
        log=sleeper.log,
    )
    holds()
    assert statuses() == {"Success": 1}
    assert StatusChange.objects.count() == 1


@pytest.mark.slow
def test_a_worker_stopped_with_its_rows_locked_does_not_delay_other_workers(
    cluster: Cluster, holds: Callable[..., None], tmp_path: Path
) -> None:
    """PostgreSQL ends its idle transaction: here after 2 s, by default after 20 (tests/unit/test_settings.py)."""
    limits = "?options=-c%20lock_timeout%3D5s%20-c%20idle_in_transaction_session_timeout%3D2s"
    sleeper = cluster.worker(
        "sleeper",
        concurrency=1,
        sabotage={"point": "deciding", "act": "stop_group", "once": str(tmp_path / "acted")},
        DATABASE_URL=cluster.env["DATABASE_URL"] + limits,
    )
    ids = many(20)
    succeed(ids)
    wait_for((tmp_path / "acted").exists, "the worker to fall asleep", log=sleeper.log)
    cluster.worker("heir")
    cluster.beat()
    wait_for(lambda: statuses() == {"Success": 20}, "the other worker to go on")
    sleeper.signal(signal.SIGCONT)
    holds()


@pytest.mark.slow
def test_an_execution_that_kills_its_process_every_time_is_quarantined_and_the_others_go_on(
    cluster: Cluster, holds: Callable[..., None]
) -> None:
    ids = many(200)
    poison = ids[100]
    worker = cluster.worker(
        sabotage={"point": "deciding", "act": "kill_process", "id": poison},
        REFRESH_MAX_ATTEMPTS="5",
    )
    cluster.beat()
    succeed(ids)
    wait_for(Quarantine.objects.exists, "the poison to be quarantined", log=worker.log)
    holds(expect_quarantine=True)
    assert list(Quarantine.objects.values_list("execution_id", "attempts")) == [(poison, 5)]
    assert statuses() == {"Success": 199, "Running": 1}
    cluster.says(f"Quarantined execution {poison}")


@pytest.mark.slow
def test_claims_whose_message_a_killed_worker_had_fetched_do_not_wait_for_the_broker(
    cluster: Cluster, redis: Redis
) -> None:
    """The node that claimed them lives, so its silence tells nothing; and the broker would deliver them again
    after minutes only. But they wait for longer than a node may be silent. (They stay with the broker, so this
    is not for `holds`: there is nothing left to take over when they come.)"""
    patience = {"REFRESH_VISIBILITY_TIMEOUT_SECONDS": "300"}
    victim = cluster.worker("victim", concurrency=6, queues=[WORK], **patience)  # a tick it took would do nothing
    wait_for(lambda: redis.hlen("unacked") == 0, "the victim to be idle", log=victim.log)
    children = subprocess.run(["pgrep", "-P", str(victim.process.pid)], capture_output=True, text=True, check=True)
    for pid in children.stdout.split():
        os.kill(int(pid), signal.SIGSTOP)
    cluster.worker("heir", concurrency=1, **patience)
    ids = many(200)
    left = iter(ids)

    def are_taken() -> bool:
        """By the victim: the heir takes one at a time."""
        if not execution_queue().stats().backlog:  # what was marked before is in a message
            succeed([next(left)])
            execution_queue().tick_has_ended()
        return sum(b"tasks.refresh_executions" in one for one in redis.hvals("unacked")) > 2

    wait_for(are_taken, "the victim to take messages it does not begin", log=victim.log)
    victim.kill()
    succeed(list(left))
    cluster.beat(**patience)
    wait_for(lambda: statuses() == {"Success": 200}, "the heir to do them all")
    wait_for(lambda: not violations(broker=lambda: 0, at_most=5), "K1 to K4 to hold")
    assert redis.hlen("unacked") >= 2, "the broker gave them back itself"
    assert StatusChange.objects.count() == 200
    assert not Quarantine.objects.exists()
