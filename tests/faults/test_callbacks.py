"""Callbacks of executions: whatever is killed at whichever point of their delivery, each is called at least once,
and none for an execution that has not ended."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path

import pytest
from django.db import connection, transaction

from harbor_refresh.executions.models import Delivery, Execution
from harbor_refresh.tasks.jobs import TrackedExecution, start
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


@pytest.fixture(autouse=True)
def servers_run_again() -> Iterator[None]:
    yield
    for server in (servers.redis, servers.postgres):
        if not server.running:
            server.start()


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
    for _, execution, status, revision, status_then, revision_then in calls(log):
        assert (status, revision) == (status_then, revision_then), execution


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


def dies(member: Member) -> None:
    wait_for(lambda: member.died() or passes_time(), "the caller to die", log=member.log)


@pytest.fixture
def well(holds: Callable[..., None], worker: object) -> Iterator[None]:
    yield
    holds()


def status(execution: Execution) -> str:
    execution.refresh_from_db()
    return execution.status


@pytest.mark.slow
@pytest.mark.usefixtures("well")
@pytest.mark.parametrize(
    "case",
    variants(
        *(
            f"{what} at {point}"
            for what, point in product(("goes on", "is killed"), ("leased", "listed", "answered", "recorded"))
        )
    ),
)
def test_an_end_that_was_opened_again_is_not_told_any_more_and_the_next_end_is(
    case: str, cluster: Cluster, worker: Callable[..., Member], log: Path
) -> None:
    """Its delivery is being written, or is claimed, or its calls have just been made, when the failed job is tried
    again. The worker that delivers goes on after that, or is killed, and another one finds what it has left: calls
    that were made are not made again."""
    what, point = case.split(" at ")
    acted, go_on = log.with_name("acted"), log.with_name("go on")
    act = {"point": point, "act": "wait", "until": str(go_on), "once": str(acted)}
    first = worker("first", sabotage=act, queues=["harbor_refresh.deliveries"])
    other = worker("other", queues=["harbor_refresh.jobs", "harbor_refresh", "harbor_refresh.ticks"])
    execution = start(
        "SCAN", jobs=[team.fails_once.s("x")], on_error=team.note_end.s("e"), on_complete=team.note_end.s("c")
    )
    wait_for(acted.exists, f"the worker to be at {point}", log=first.log)
    assert status(execution) == "Error"
    assert execution.retry_failed() == 1
    is_killed = what == "is killed"
    if is_killed:
        first.kill()
        worker("heir", queues=["harbor_refresh.deliveries"])
    go_on.touch()
    cluster.beat({"Deliver": 1})
    wait_for(lambda: status(execution) == "Success", "the second run to succeed", log=other.log)
    wait_for(
        lambda: states() == {"delivered": 2} or (is_killed and passes_time()),
        "both ends to be delivered",
        log=first.log,
    )
    was_told = point in ("answered", "recorded")
    assert [one[:4] for one in calls(log)] == [
        *([("e", str(execution.pk), "Error", "1"), ("c", str(execution.pk), "Error", "1")] if was_told else []),
        ("c", str(execution.pk), "Success", "3"),
    ]


def called_again(log: Path, times: int) -> None:
    """Let the lease of each call end, until it was called so often."""
    for number in range(1, times + 1):
        wait_for(lambda: len(calls(log)) >= number, f"call {number}")  # noqa: B023 - waits here
        move_clock(seconds=70)


@pytest.mark.slow
@pytest.mark.usefixtures("well")
def test_a_callback_that_ends_its_process_each_time_is_given_up_and_the_next_end_is_told(
    cluster: Cluster, worker: Callable[..., Member], log: Path
) -> None:
    """Its worker has one process, which does all else as well, and gives deliveries up after three attempts."""
    member = worker(include=["tests.faults.impatient"], concurrency=1)
    cluster.beat({"Deliver": 1})
    bad = start("SCAN", jobs=[team.fails_once.s("x")], on_complete=team.ends_its_process.s())
    called_again(log, 3)
    wait_for(lambda: states() == {"dead": 1}, "it to be given up", log=member.log)
    good = start("SCAN", jobs=[team.copy.s("y")], on_complete=team.ends_its_process.s())
    assert bad.retry_failed() == 1
    wait_for(lambda: states() == {"dead": 1, "delivered": 2}, "all else to be told", log=member.log)
    first, *others = [one[1:] for one in calls(log)[2:]]
    assert calls(log)[:2] == [("deadly", *first)] * 2
    assert first == (str(bad.pk), "Error", "1")
    assert sorted(others) == [(str(bad.pk), "Success", "3"), (str(good.pk), "Success", "1")]
    dead = Delivery.objects.get(state="dead")
    assert (dead.attempts, dead.last_error) == (
        3,
        "given up after 3 attempts: its process ended or hung in the last one",
    )
    assert not member.died()


LIMITED = {
    "sleeps": "TimeoutError: the call took longer than 40 s",
    "queries": "TimeoutError: the call took longer than 40 s",
    "ignores": "given up after 3 attempts: its process ended or hung in the last one",
}


@pytest.mark.slow
@pytest.mark.usefixtures("well")
@pytest.mark.parametrize("how", LIMITED)
def test_a_callback_that_hangs_holds_a_process_until_its_limit_and_is_given_up(
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
    assert (dead.attempts, dead.last_error) == (3, LIMITED[how])
    assert [one[0] for one in calls(log)].count(how) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("well")
def test_callbacks_of_one_execution_come_in_the_order_of_its_ends(
    cluster: Cluster, worker: Callable[..., Member], log: Path
) -> None:
    """Its job is tried again after each end, and the worker is killed each time it has called."""
    worker("jobs", queues=["harbor_refresh.jobs", "harbor_refresh", "harbor_refresh.ticks"])
    cluster.beat({"Deliver": 1})
    execution = start("SCAN", jobs=[team.fail.s("x")], on_complete=team.note_end.s("c"))
    for number in range(4):
        act = {"point": "answered", "act": "kill_group", "once": str(log.with_name(f"acted {number}"))}
        caller = worker(f"caller-{number}", sabotage=act, queues=["harbor_refresh.deliveries"])
        dies(caller)
        if number < 3:
            assert execution.retry_failed() == 1
            wait_for(lambda: status(execution) == "Error", "the next end")
    last = worker("last", queues=["harbor_refresh.deliveries"])
    wait_for(lambda: states() == {"delivered": 4} or passes_time(), "all ends to be delivered", log=last.log)
    revisions = [int(one[3]) for one in calls(log)]
    assert all(before <= after for before, after in pairwise(revisions)), revisions
    assert max(revisions) == TrackedExecution.objects.get(pk=execution.pk).revision
