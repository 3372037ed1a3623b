"""`async def` jobs and their limits, on_failure, on_first_error, a deadline and stop(kill_after=…) in workers."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from celery import chain

from harbor_refresh.tasks.jobs import TrackedExecution, start
from harbor_refresh.tasks.models import Job
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.variants import variants
from tests.waiting import wait_for


@pytest.mark.parametrize("pool", variants("prefork", "threads", "solo"))
def test_each_pool_runs_them_and_they_hear_a_stop(
    pool: str, worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    """celery#6552."""
    member = worker(pool=pool, concurrency=4)
    jobs = [team.async_copy.s(str(number), 0.1, failures=number % 2) for number in range(20)]
    execution = start("SCAN", jobs=[*jobs, chain(team.async_copy.s("a"), team.joined.s("b"))])
    assert execution.wait(timeout=120) == "Success", member.text()
    assert log.read_text().count("async_copy") == 31
    endless = start("SCAN", jobs=[team.async_endless.s("c")])
    wait_for(Job.objects.filter(check_in__isnull=False).exists, "it to check in", log=member.log)
    assert endless.stop() == 1
    wait_for(lambda: "heard c" in log.read_text(), "it to hear the stop", log=member.log)
    holds()
    assert not member.died()


def test_a_soft_limit_cancels_them_and_a_hard_limit_ends_their_process(
    worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    member = worker()
    limited = [
        team.async_limited.s("soft", hears=True).set(time_limit=60),
        team.async_limited.s("hard", hears=False).set(time_limit=3),
    ]
    execution = start("SCAN", jobs=limited)
    assert execution.wait(timeout=120) == "Error"
    # the deaf one may hear of the end of its process as well
    assert {one for one in log.read_text().splitlines() if one.startswith("limited")} == {
        "limited hard",
        "limited soft",
    }
    messages = execution.tasks.order_by("pk").values_list("status_message", flat=True)
    assert list(messages) == [
        "SoftTimeLimitExceeded: SoftTimeLimitExceeded()",
        "TimeLimitExceeded: TimeLimitExceeded(3,)",
    ]
    assert start("SCAN", jobs=[team.async_copy.s("next")]).wait(timeout=60) == "Success"
    holds()
    assert not member.died()


def test_the_first_failure_stops_what_runs_and_what_waits_and_is_told(
    cluster: Cluster, worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    """celery#4547. By the worker that sees it, and not by beat."""
    cluster.beat({"Deliver": 1, "Recover stale claims": 3600})
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
