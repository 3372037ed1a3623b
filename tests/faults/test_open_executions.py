"""An open execution whose producers die: it ends, with the jobs that were added, each once.

PRODUCERS and SEED in the environment say how many producers die, and how.
"""

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from harbor_refresh.executions.models import Addition, Execution, Gate, Task
from harbor_refresh.tasks.jobs import TrackedExecution, start
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import status
from tests.waiting import wait_for

DEATHS = int(os.environ.get("PRODUCERS", "1000"))
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1, 10**6)
PAGES, JOBS = 3, 2


def produced(cluster: Cluster, execution: Execution, notes: Path, deaths: int) -> Member:
    plan = {
        "execution": execution.pk,
        "deaths": deaths,
        "at_once": 24,
        "pages": PAGES,
        "jobs": JOBS,
        "seed": SEED,
        "notes": str(notes),
    }
    command = [sys.executable, "-m", "tests.faults.producers"]
    return cluster.start("producers", command, PRODUCERS=json.dumps(plan))


def all_dead(producers: Member) -> None:
    wait_for(producers.died, "all producers to die", seconds=900, log=producers.log)
    assert producers.process.returncode == 0, producers.text()


def added(execution: Execution) -> set[str]:
    """The jobs that are in the database, by name. No name comes twice."""
    args = Task.objects.filter(execution=execution).exclude(job_id="").values_list("job__args", flat=True)
    found = Counter(name for (name,) in args)
    assert set(found.values()) <= {1}
    return set(found)


@pytest.mark.slow
@pytest.mark.parametrize("ends_by", ["its time limit", "a close in the middle"])
def test_it_ends_with_the_jobs_that_were_added_however_its_producers_die(
    ends_by: str, cluster: Cluster, worker: Callable[..., Member], holds: Callable[..., None], log: Path
) -> None:
    """Each addition is there as a whole or not at all. One that returned is there, and so is one that died between
    its commit and its messages."""
    print(f"SEED={SEED}")  # noqa: T201  # shown if it fails
    notes = log.with_name("notes")
    notes.touch()
    worker()
    cluster.beat()
    execution = start("REPLICATION", open=True, close_after=3600)
    producers = produced(cluster, execution, notes, DEATHS)
    if ends_by == "a close in the middle":
        wait_for(lambda: Addition.objects.count() > DEATHS // 4, "some producers to be done", log=producers.log)
        assert execution.close()
    all_dead(producers)
    if ends_by == "its time limit":
        assert status(execution) == "Running"
        Gate.objects.update(closes_at=timezone.now())
    expected = "Error" if ends_by == "its time limit" else "Success"
    wait_for(lambda: status(execution) == expected, f"the execution to be {expected}", seconds=600)
    holds()
    lines = notes.read_text().splitlines()
    assert [line for line in lines if "failed" in line] == []
    keys = set(Addition.objects.values_list("key", flat=True))
    said = {line.split()[0] for line in lines if line.endswith((f" {JOBS}", " 0"))}
    assert said <= keys, "what was told as added is there"
    assert keys - said, "some died after the commit and told no more"
    assert added(execution) == {f"{key}.{one}" for key in keys for one in range(JOBS)}
    assert set(log.read_text().splitlines()) == {f"copy {name}" for name in added(execution)}
    assert execution.progress().counts == {"Success": JOBS * len(keys)}
    refused = {line.split()[0] for line in lines if line.endswith(" closed")}
    assert bool(refused) == (ends_by != "its time limit")
    assert not refused & keys
    half = [number for number, pages in Counter(key.split(".")[0] for key in keys).items() if pages < PAGES]
    figures = f"{DEATHS} deaths, {len(keys)} additions, {len(keys - said)} untold, {len(half)} half done"
    print(figures)  # noqa: T201
    assert half, "some died in the middle of their work"


def test_a_job_grows_its_own_execution(
    cluster: Cluster, worker: Callable[..., Member], holds: Callable[..., None], log: Path
) -> None:
    """A tree: each job adds two below it, three levels deep. The execution was not opened."""
    member = worker()
    execution = start("SCAN", jobs=[team.grow.s("r", 3)])
    wait_for(lambda: status(execution) == "Success", "the tree to end", log=member.log)
    names = [line.split()[1] for line in log.read_text().splitlines()]
    assert Counter(len(name) for name in names) == {1: 1, 2: 2, 3: 4, 4: 8}
    assert execution.tasks.count() == 15
    holds()


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
