"""SIGKILL of a worker that runs as many jobs as it can, again and again, at a moment that a seed decides.

KILLS and SEED in the environment say how often and which. It tells what each kill costs:

    KILLS=50 SEED=7 make slow ARGS="-n 0 -s tests/faults/test_jobs_and_kills.py"
"""

import os
import random
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.percentiles import summary
from harbor_refresh.celery import app
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.broker.celery_queues import JOBS, TICKS, WORK
from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import status
from tests.waiting import slowness, wait_for

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KILLS", "2"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1, 10**6)
#: How many jobs run at once.
SIZES = {"threads": 50, "prefork": 10}
#: What a kill may cost, on a machine that does nothing else.
P99_SECONDS = 15.0 * slowness()


def begun(log: Path) -> dict[str, list[float]]:
    """When each run of each job began, by the clock of this machine."""
    found: dict[str, list[float]] = defaultdict(list)
    for line in log.read_text().splitlines():
        _, job, at = line.split()
        found[job].append(float(at))
    return found


@pytest.mark.parametrize("pool", SIZES)
def test_whatever_is_killed_every_job_is_done_and_none_after_its_end(
    pool: str, cluster: Cluster, worker: Callable[..., Member], holds: Callable[..., None], log: Path
) -> None:
    cluster.beat()
    chance = random.Random(SEED)
    seed = f"SEED={SEED}"
    costs: list[float] = []
    size = SIZES[pool]
    given: dict[str, Any] = {"pool": pool, "concurrency": size}
    current = worker("first", **given)
    for number in range(KILLS):
        heir = worker(f"heir{number}", **given, queues=[TICKS, WORK])  # no jobs until the kill
        names = [f"{number}-{one}" for one in range(size)]
        execution = start("SCAN", jobs=[team.timed.s(name, chance.uniform(0.2, 3)) for name in names])
        enough = chance.randrange(0, size)
        wait_for(lambda: sum(name in begun(log) for name in names) >= enough, seed, log=current.log)  # noqa: B023
        time.sleep(chance.uniform(0, 1))  # the moment of the kill is what chance decides
        killed = time.time()
        current.kill()
        before = begun(log)
        app.control.add_consumer(JOBS, destination=[f"heir{number}@{socket.gethostname()}"])
        current = heir
        wait_for(lambda: status(execution) == "Success", seed, log=current.log)  # noqa: B023
        costs += [
            runs[len(before[name])] - killed
            for name, runs in begun(log).items()
            if name in names and name in before and len(runs) > len(before[name])
        ]
        print(f"kill {number + 1} of {KILLS}: {len(costs)} run again, slowest {max(costs, default=0):.1f} s")  # noqa: T201
    holds()
    found = begun(log)
    late = [
        (name, at)
        for task in Task.objects.select_related("job")
        for name in [task.job.args[0]]
        for at in found[name]
        if task.end_time and at > task.end_time.timestamp()
    ]
    assert late == [], seed
    assert len(found) == KILLS * size, seed
    assert max(map(len, found.values())) <= team.timed.max_attempts, seed
    assert set(Task.objects.values_list("status", flat=True)) == {"Success"}, seed
    cost = summary(costs, 1)
    print(f"{seed}: {len(costs)} of {KILLS * size} run again, after the kill {cost}")  # noqa: T201
    assert (cost["p99"] or 0) <= P99_SECONDS, seed
