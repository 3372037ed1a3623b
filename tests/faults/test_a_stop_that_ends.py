"""stop(kill_after=…): the process of a run that does not listen is killed, and no other."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.tasks.jobs import TrackedExecution, start
from harbor_refresh.tasks.models import Job
from tests.faults import jobs as team
from tests.faults.cluster import Member
from tests.variants import variants
from tests.waiting import wait_for


def processes(log: Path) -> dict[str, int]:
    """The processes that have begun each job that does not listen; of more than one run the last."""
    lines = [one.split() for one in log.read_text().splitlines()]
    return {name: int(process) for word, name, process in (one for one in lines if one[0] == "deaf")}


def runs(log: Path, word: str) -> int:
    return log.read_text().count(f"{word} ")


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def begun(execution: TrackedExecution, log: Path, word: str = "deaf") -> None:
    wait_for(lambda: runs(log, word) == 1 and states(execution) == {"running"}, f"the job {word} to begin")


def states(execution: TrackedExecution) -> set[str]:
    return set(Job.objects.filter(task__execution=execution).values_list("state", flat=True))


def test_the_process_of_a_run_that_does_not_listen_is_killed_and_the_job_does_not_run_again(
    worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    """celery#7529 and flower#254: a task that hangs is terminated, and does not come back to another process."""
    member = worker(concurrency=2)
    bystander = start("SCAN", jobs=[team.endless.s("b")])
    begun(bystander, log, "endless")
    execution = start("SCAN", jobs=[team.deaf.s("a"), team.deaf.s("never")])
    wait_for(lambda: runs(log, "deaf") == 1, "the job to begin", log=member.log)
    ((name, process),) = processes(log).items()
    assert execution.stop(kill_after=2) == 1
    assert is_alive(process), "it has its time"
    wait_for(lambda: not is_alive(process), "its process to be killed", log=member.log)
    assert start("SCAN", jobs=[team.copy.s("next")]).wait(timeout=60) == "Success"
    execution.refresh_from_db()
    assert (execution.status, states(execution)) == ("Stopped", {"ended"})
    assert set(execution.tasks.values_list("status", flat=True)) == {"Stopped"}
    assert (runs(log, "deaf"), states(bystander)) == (1, {"running"})
    bystander.stop(kill_after=60)
    holds()
    assert (runs(log, "deaf"), runs(log, "endless")) == (1, 1), "none has begun again"
    assert member.text().count("was stopped and did not end") == 1
    assert execution.resume_stopped() == 2
    assert set(Job.objects.values_list("kill_at", flat=True)) >= {None}
    wait_for(lambda: runs(log, "deaf") == 3, "both to run", log=member.log)
    assert name in processes(log)
    execution.stop(kill_after=1)
    wait_for(lambda: not any(map(is_alive, processes(log).values())), "both to be killed", log=member.log)
    holds()
    assert not member.died()


@pytest.mark.slow
def test_a_run_that_was_stopped_before_is_killed_by_a_second_stop(
    worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    member = worker()
    parent = start("SCAN", open=True)
    child = start("SCAN", jobs=[team.deaf.s("a")], parent=parent)
    begun(child, log)
    parent.stop()
    (process,) = processes(log).values()
    assert parent.stop(kill_after=1) == 0
    wait_for(lambda: not is_alive(process), "its process to be killed", log=member.log)
    holds()


@pytest.mark.slow
@pytest.mark.parametrize("pool", variants("threads", "solo", "gevent"))
def test_a_pool_without_processes_says_once_that_it_cannot(
    pool: str, worker: Callable[..., Member], log: Path
) -> None:
    member = worker(pool=pool, concurrency=2)
    execution = start("SCAN", jobs=[team.deaf.s("a"), team.deaf.s("b")])
    wait_for(lambda: runs(log, "deaf") > 0, "a job to begin", log=member.log)
    execution.stop(kill_after=1)
    wait_for(lambda: "cannot be killed" in member.text(), "the worker to say so", log=member.log)
    execution.stop(kill_after=1)
    assert member.text().count("cannot be killed") == 1
    assert not member.died()
