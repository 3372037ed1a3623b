"""Callbacks of executions (solid_queue#142): whatever is killed at whichever point of their delivery, each is
called at least once, and none for an execution that has not ended."""

import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from django.db import connection, transaction

from harbor_refresh.executions.models import Delivery
from harbor_refresh.tasks.jobs import start
from tests import servers
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.integration.executions.deliveries.changed_executions import move_clock, states
from tests.variants import variants
from tests.waiting import wait_for

POINTS = ("answered", "leased", "listed", "recorded", "committed", "deciding")
VICTIMS = ("worker", "redis", "postgres", "beat")
#: What is asked for, and the statuses with which it is called.
ASKED = {"on_success": ("Success",), "on_error": ("Error",), "on_complete": ("Success", "Error", "Stopped")}


def begun() -> dict[int, str]:
    """Executions with all callbacks, and the status that each will have."""
    all_of_them = {name: team.note_end.s(name) for name in ASKED}
    good = [start("REPLICATION", jobs=[team.copy.s(str(n))], **all_of_them) for n in range(4)]
    bad = start("REPLICATION", jobs=[team.fail.s("x")], **all_of_them)
    with transaction.atomic():  # it never begins
        stopped = start("REPLICATION", jobs=[team.endless.s("y")], **all_of_them)
        stopped.stop()
    return {**{one.pk: "Success" for one in good}, bad.pk: "Error", stopped.pk: "Stopped"}


def calls(log: Path) -> list[tuple[str, ...]]:
    """Name, execution, status and revision of the end; status and revision of the execution at the call."""
    lines = (line.split() for line in log.read_text().splitlines())
    return [tuple(words[1:]) for words in lines if words[0] == "ended"]


def expected(ends: dict[int, str]) -> set[tuple[str, str, str]]:
    return {
        (name, str(pk), status)
        for (pk, status), (name, statuses) in product(ends.items(), ASKED.items())
        if status in statuses
    }


moved: list[float] = [0.0]


def passes_time() -> None:
    """Every few seconds, a lease of a minute is over. Deliveries must not grow so old that they are given up."""
    if time.monotonic() > moved[-1] + 3:
        moved.append(time.monotonic())
        move_clock(seconds=70)


def assert_called(log: Path, ends: dict[int, str]) -> None:
    """Until all were called; then none of the calls is one that must not be."""
    wait_for(
        lambda: expected(ends) <= {one[:3] for one in calls(log)} or passes_time(),
        "each callback to be called",
        seconds=240,
    )
    wait_for(lambda: set(states()) == {"delivered"} or passes_time(), "all to be recorded", seconds=240)
    assert {one[:3] for one in calls(log)} == expected(ends)
    for _, execution, *end in calls(log):
        assert end[:2] == end[2:], execution


@pytest.mark.parametrize("case", variants(*(f"{victim} at {point}" for victim, point in product(VICTIMS, POINTS))))
def test_each_callback_is_called_at_least_once_and_none_before_the_end(
    case: str, cluster: Cluster, worker: Callable[..., Member], log: Path
) -> None:
    victim, point = case.split(" at ")
    acted, go_on = log.with_name("acted"), log.with_name("go on")
    act = {"point": point, "act": "wait", "until": str(go_on), "once": str(acted)}
    first = worker("first", sabotage=act)
    beat = cluster.beat({"Deliver": 1})
    ends = begun()
    wait_for(acted.exists, f"the worker to be at {point}", log=first.log)
    match victim:
        case "worker":
            first.kill()
        case "beat":
            beat.kill()
        case "redis":
            servers.redis.kill()
            servers.redis.start()
        case "postgres":
            connection.close()
            servers.postgres.kill()
            servers.postgres.start()
    go_on.touch()
    if victim == "worker":
        worker("heir")
    if victim == "beat":
        cluster.beat({"Deliver": 1})
    assert_called(log, ends)


@pytest.fixture
def well(holds: Callable[..., None], worker: object) -> Iterator[None]:
    yield
    holds()


TOO_LONG = "TimeoutError: the call took longer than 40 s"
KILLED = "given up after 3 attempts: its process ended or hung in the last one"
#: On a busy machine the limit that kills may come before the cancelled query has ended.
LIMITED = {"sleeps": {TOO_LONG}, "queries": {TOO_LONG, KILLED}, "ignores": {KILLED}, "ends": {KILLED}}


@pytest.mark.slow
@pytest.mark.usefixtures("well")
@pytest.mark.parametrize("how", LIMITED)
def test_a_callback_that_hangs_or_ends_its_process_is_given_up_and_holds_up_no_other(
    how: str, cluster: Cluster, worker: Callable[..., Member], log: Path
) -> None:
    """The only process of its worker runs the next job and calls the next callback after each of its attempts."""
    member = worker(include=["tests.faults.impatient"], concurrency=1)
    cluster.beat({"Deliver": 1})
    start("SCAN", jobs=[team.copy.s("x")], on_complete=team.hangs.s(how))
    wait_for(lambda: len(calls(log)) == 1, "the first call", log=member.log)
    start("SCAN", jobs=[team.copy.s("y")], on_complete=team.note_end.s("next"))
    wait_for(lambda: "next" in log.read_text(), "the next callback to be called", log=member.log)
    wait_for(lambda: states().get("dead") or passes_time(), "it to be given up", log=member.log)
    wait_for(lambda: states() == {"dead": 1, "delivered": 1}, "the other one to be recorded", log=member.log)
    dead = Delivery.objects.get(state="dead")
    assert dead.attempts == 3
    assert dead.last_error in LIMITED[how]
    assert [one[0] for one in calls(log)].count(how) == 3
