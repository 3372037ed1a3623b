"""Executions within executions, while workers are killed: every level is right, and the root is refreshed seldom.
And jobs that add jobs to their own execution.

LEAVES, KILLS and SEED in the environment say how many leaves there are, and how often and when a worker is killed.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.executions.models import Execution, Link, Task
from harbor_refresh.tasks.jobs import TrackedExecution, start
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import status
from tests.waiting import wait_for

LEAVES = int(os.environ.get("LEAVES", "10000"))
KILLS = int(os.environ.get("KILLS", "6"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1, 10**6)
#: Refreshes of the root that a tree of any number of leaves may cost.
MOST_REFRESHES = 100


def ended() -> int:
    return Task.objects.filter(status_code=3).count()


@pytest.mark.slow
def test_every_level_is_right_and_the_root_is_refreshed_seldom(
    cluster: Cluster, holds: Callable[..., None], log: Path
) -> None:
    """Three levels below the root's own: a worker is killed again and again, also while it starts children."""
    print(f"SEED={SEED}")  # noqa: T201  # shown if it fails
    chance = random.Random(SEED)
    first, second, leaves = 10, 10, LEAVES // 100
    notes = log.with_name("refreshes")
    notes.touch()
    root = start("SCAN", jobs=[team.spread.s("r", [first, second, leaves])])
    note = {"point": "deciding", "act": "note", "notes": str(notes), "id": root.pk}

    def worker(name: str) -> Member:
        return cluster.worker(name, include=["tests.faults.jobs"], sabotage=note, JOBS_LOG=str(log))

    cluster.beat()
    alive = [worker("one"), worker("two")]
    for number in range(KILLS):
        target = ended() + chance.randrange(1, max(2, first * second * leaves // (2 * KILLS)))
        wait_for(lambda target=target: ended() >= target or status(root) != "Running", "some jobs to end")
        time.sleep(chance.random() / 5)  # anywhere in the work
        alive.pop(0).kill()
        alive.append(worker(f"heir-{number}"))
    wait_for(lambda: status(root) == "Success", "the root to end", seconds=900, log=alive[-1].log)
    holds()
    assert Counter(Execution.objects.values_list("status", flat=True)) == {"Success": 1 + first + first * second}
    assert Counter(Link.objects.values_list("parent", flat=True).order_by()).total() == first + first * second
    assert root.progress().counts == {"Success": 1 + first}
    assert set(log.read_text().splitlines()) >= {
        f"copy r.{a}.{b}.{c}" for a in range(first) for b in range(second) for c in range(leaves)
    }
    assert Task.objects.filter(job__name="tests.copy").count() == first * second * leaves
    refreshes = len(notes.read_text().splitlines())
    print(f"{first * second * leaves} leaves, {KILLS} kills, {refreshes} refreshes of the root")  # noqa: T201
    assert 1 <= refreshes <= MOST_REFRESHES


@pytest.mark.slow
def test_a_job_that_dies_after_it_has_added_adds_nothing_twice(
    cluster: Cluster, worker: Callable[..., Member], holds: Callable[..., None], log: Path, tmp_path: Path
) -> None:
    """Its worker is killed between the commit of the addition and its messages. Another one runs the job again."""
    act = {"point": "added", "act": "kill_group", "once": str(tmp_path / "acted")}
    victim = worker("victim", sabotage=act)
    execution = start("SCAN", jobs=[team.grow.s("r", 1)])
    wait_for(victim.died, "the victim to die", log=victim.log)
    assert execution.tasks.count() == 3
    heir = worker("heir")
    cluster.beat()
    wait_for(lambda: status(execution) == "Success", "the rest to be done", log=heir.log)
    assert Counter(log.read_text().splitlines()) == {"grow r": 2, "grow ra": 1, "grow rb": 1}
    assert TrackedExecution.objects.get(pk=execution.pk).progress().counts == {"Success": 3}
    holds()
