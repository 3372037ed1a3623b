"""Limits of all workers together (celery#5732, celery#6591) and turns of executions (kombu#390), with real workers
and the effects' own log."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harbor_refresh.tasks.jobs import PlannedJob, job, needs, start
from harbor_refresh.tasks.models.job import Job, Node
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import ends
from tests.waiting import wait_for

LIMIT = 3


class Event(NamedTuple):
    at: float
    #: One more, or one less.
    by: int
    name: str


def effects(log: Path) -> list[Event]:
    words = [line.split() for line in log.read_text().splitlines()]
    return sorted(Event(float(at), 1 if what == "begins" else -1, name) for what, name, at in words)


def most_at_once(events: list[Event]) -> int:
    now = most = 0
    for one in events:
        now += one.by
        most = max(most, now)
    return most


def with_a_kill(events: list[Event], killed: float) -> list[Event]:
    """These events, and the ends at this moment of the effects that had no end."""
    begun, ended = (Counter(one.name for one in events if one.by == by) for by in (1, -1))
    return sorted([*events, *(Event(killed, -1, name) for name in begun - ended)])


@pytest.fixture
def workers(cluster: Cluster, worker: Callable[..., Member]) -> list[Member]:
    """Two, each of which alone has more processes than the limit lets run."""
    cluster.beat()
    return [worker(name, concurrency=LIMIT + 1) for name in ("one", "two")]


def test_a_limit_of_all_workers_is_reached_and_never_exceeded_and_a_killed_worker_frees_its_places(
    workers: list[Member], holds: Callable[..., None], log: Path
) -> None:
    victim, heir = workers
    execution = start("SCAN", jobs=[team.limited.s(str(n), 0.5) for n in range(60)])
    wait_for(lambda: len(effects(log)) > 20, "jobs to run", log=heir.log)
    victim.kill()
    killed = time.time()
    ends(execution, "Success", heir)
    events = effects(log)
    assert most_at_once(with_a_kill(events, killed)) == LIMIT
    assert most_at_once([one for one in events if one.at > killed + 30]) <= LIMIT
    assert {one.name for one in events if one.by == -1} == {str(n) for n in range(60)}
    holds()


def graph(registry: str) -> PlannedJob:
    """A diamond of a, b, c and d, and a clean-up that waits for it, and for a job behind a broken one."""
    a = job(team.build.s(registry, "a"))
    b, c, broken = (job(team.build.s(registry, name), needs=[a]) for name in ("b", "c", "broken"))
    d = job(team.build.s(registry, "d"), needs=[b, c])
    publish = job(team.build.s(registry, "publish"), needs=[broken])
    return job(team.build.s(registry, "clean-up"), needs=needs(d, publish, even_if_failed=True))


def test_graphs_and_a_limit_by_key_are_kept_while_a_worker_is_killed(
    workers: list[Member], holds: Callable[..., None], log: Path
) -> None:
    """Diamonds (celery#893, procrastinate#1198), Oban's workflows, and River's concurrency limits by key."""
    victim, heir = workers
    keys = ("x", "y")
    executions = [start("BUILD", jobs=[graph(key)]) for key in keys * 3]
    its_node = Node.objects.get(name__startswith="one@").pk
    its_runs = Job.objects.filter(state="running", node=its_node)
    wait_for(lambda: len(effects(log)) > 6 and its_runs.exists(), "it to run a job", log=victim.log)
    victim.kill()
    killed = time.time()
    for execution in executions:
        ends(execution, "Error", heir)
        a, d = ["a"], ["d", [["b", [["a"]]], ["c", [["a"]]]]]
        results = [one.value for one in execution.results()]
        assert [one for one in results if one[0] in ("a", "d", "clean-up")] == [a, d, ["clean-up", [d, None]]]
        assert execution.progress().counts == {"Error": 1, "Stopped": 1, "Success": 5}
    for key in keys:
        its = [one for one in effects(log) if one.name.startswith(key)]
        assert most_at_once(with_a_kill(its, killed)) == 1
        assert {one.name for one in its} == {
            f"{key}/{name}" for name in ("a", "b", "c", "broken", "d", "clean-up")
        }
    holds()


@pytest.mark.slow
def test_a_rate_holds_for_all_workers_together(workers: list[Member], log: Path) -> None:
    """In any second 50 begin, and those of the last 0.4 seconds as well. A job begins a moment after it was
    admitted, so the window is wide."""
    execution = start("SCAN", jobs=[team.rated.s(str(n)) for n in range(300)])
    ends(execution, "Success", workers[0])
    begun = [one.at for one in effects(log) if one.by == 1]
    assert len(begun) == 300
    assert begun[-1] - begun[0] > 300 / 50 - 1
    for first in begun:
        assert sum(first <= at < first + 3 for at in begun) <= 50 * 3 + 70


@pytest.mark.slow
def test_workers_of_other_queues_use_up_no_rate(
    cluster: Cluster, worker: Callable[..., Member], log: Path
) -> None:
    """Each worker looks at all limits, and the looks of three workers come first as a rule."""
    cluster.beat()
    member = worker("one")
    for name in ("two", "three", "four"):
        worker(name, concurrency=1, queues=["another"])
    execution = start("SCAN", jobs=[team.slowly_rated.s(str(n)) for n in range(40)])
    ends(execution, "Success", member)
    begun = [one.at for one in effects(log) if one.by == 1]
    assert 22 < begun[-1] - begun[0] < 28, "39 times 0.6 s"


@pytest.mark.slow
def test_three_jobs_behind_many_slow_ones_are_done_soon(workers: list[Member], log: Path) -> None:
    member = workers[0]
    many = start("SCAN", jobs=[team.copy.s("a", 0.1) for _ in range(20_000)])
    wait_for(lambda: len(log.read_text().splitlines()) > 60, "slow jobs to run", log=member.log)
    began = time.monotonic()
    few = start("SCAN", jobs=[team.copy.s("b") for _ in range(3)])
    wait_for(lambda: not few.tasks.exclude(status="Success").exists(), "the three to end", log=member.log)
    seconds = time.monotonic() - began
    assert seconds < 30, f"{seconds:.1f} s, and the slow ones take 250"
    many.stop()
