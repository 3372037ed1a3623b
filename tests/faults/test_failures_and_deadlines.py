"""on_failure, on_first_error and deadline with real workers: the rest is stopped, whatever is killed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models.terms import Failure
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.waiting import wait_for


def test_the_first_failure_stops_what_runs_and_what_waits_and_is_told(
    cluster: Cluster, worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    """celery#4547."""
    cluster.beat({"Deliver": 1})
    member = worker(concurrency=2)
    jobs = [team.endless.s("a"), team.fail.s("b"), *(team.copy.s("never").set(countdown=3600) for _ in range(20))]
    execution = start("SCAN", jobs=jobs, on_failure="stop", on_first_error=team.note_end.s("first"))
    assert execution.wait(timeout=120) == "Error", member.text()
    assert execution.progress().counts == {"Error": 1, "Stopped": 21}
    holds()
    wait_for(lambda: "ended first" in log.read_text(), "the callback", log=member.log)
    lines = log.read_text()
    assert lines.count("ended first") == 1
    assert f"ended first {execution.pk} Running 0 " in lines
    assert "never" not in lines


@pytest.mark.slow
def test_a_worker_that_is_killed_behind_a_failure_leaves_the_stop_to_the_next(
    worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    """The first worker takes no ticks, so it runs jobs and stops nothing."""
    first = worker("first", queues=["harbor_refresh.jobs"], concurrency=2)
    jobs = [team.endless.s("a"), team.fail.s("b"), *(team.copy.s("never").set(countdown=3600) for _ in range(3))]
    execution = start("SCAN", jobs=jobs, on_failure="stop")
    wait_for(Failure.objects.exists, "the failure to be noted", log=first.log)
    first.kill()
    second = worker("second")
    assert execution.wait(timeout=120) == "Error", second.text()
    holds()
    assert execution.progress().counts == {"Error": 1, "Stopped": 4}
    assert not Failure.objects.exists()


def test_a_deadline_stops_what_runs_without_a_beat(
    worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    member = worker(concurrency=2)
    jobs = [team.endless.s("a"), team.copy.s("b"), *(team.copy.s("never").set(countdown=3600) for _ in range(3))]
    execution = start("SCAN", jobs=jobs, deadline=3)
    assert execution.wait(timeout=120) == "Stopped", member.text()
    assert execution.status_message == "its deadline passed"
    assert execution.progress().counts == {"Success": 1, "Stopped": 4}
    holds()
