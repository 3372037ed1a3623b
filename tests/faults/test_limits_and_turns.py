"""Limits of all workers together (celery#5732, celery#6591) and turns of executions (kombu#390), with real workers
and the effects' own log."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harbor_refresh.tasks.jobs import start
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
    begun, ended = ([one.name for one in events if one.by == by] for by in (1, -1))
    lost = [name for name in begun if begun.count(name) > ended.count(name)]
    events += [Event(killed, -1, name) for name in set(lost)]
    assert most_at_once(sorted(events)) == LIMIT
    assert most_at_once([one for one in sorted(events) if one.at > killed + 30]) <= LIMIT
    assert set(ended) == {str(n) for n in range(60)}
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
