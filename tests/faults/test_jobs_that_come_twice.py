"""Whatever makes a job come twice, or not at all: it runs once at a time, and its last word is right."""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.celery import app
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.broker.celery_queues import JOBS, TICKS, WORK
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.models import Job
from tests import servers
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import ends, runs
from tests.started import start as record
from tests.waiting import wait_for

Start = Callable[..., Member]
#: What is told of a task: status, revision, run count, message.
Row = tuple[str, int, int, str]


@pytest.fixture(autouse=True)
def all_is_well(worker: Start, cluster: Cluster, holds: Callable[..., None]) -> Iterator[None]:
    """After each test K1 to K5, and no job is left in progress."""
    cluster.beat()
    yield
    holds()


def let_end(log: Path, name: str, number: int = 1) -> None:
    """Open the gate of this run of a job that holds."""
    log.with_name(f"{name}.{number}").touch()


def pids(log: Path, name: str) -> list[int]:
    """Of the processes of each run of a job that holds, so far."""
    return [int(line.split()[2]) for line in log.read_text().splitlines() if line.startswith(f"held {name} ")]


def rows(*executions: Execution) -> dict[str, Row]:
    """What has become of each job, by the first of its arguments."""
    jobs = Job.objects.filter(task__execution__in=executions).select_related("task")
    return {
        str(job.args[0]): (job.task.status, job.task.status_revision, job.task.run_count, job.task.status_message)
        for job in jobs
    }


@pytest.mark.slow
def test_a_job_that_takes_longer_than_the_visibility_timeout_runs_once(worker: Start, log: Path) -> None:
    """Its message comes again after three seconds, to the worker that is free."""
    one = worker("one", concurrency=1)
    execution = start("SCAN", jobs=[team.held.s("a")])
    (job,) = execution.tasks.values_list("job_id", flat=True)
    two = worker("two", concurrency=1)
    received = f"Task tests.held[{job}] received"
    wait_for(lambda: (one.text() + two.text()).count(received) > 1, "its message to come again", log=two.log)
    let_end(log, "a")
    ends(execution, "Success", one)
    assert len(pids(log, "a")) == 1
    assert rows(execution) == {"a": ("Success", 0, 0, "")}


@pytest.mark.slow
def test_what_a_killed_worker_had_fetched_and_not_begun_runs_once_and_does_not_wait_for_the_broker(
    worker: Start, cluster: Cluster, redis: Redis, log: Path
) -> None:
    """The broker brings it back later, when it has ended. What a live worker has fetched is sent again with it,
    because another one is idle, and that worker then finds that it has ended."""
    cluster.env["REFRESH_VISIBILITY_TIMEOUT_SECONDS"] = "25"
    fetching = {"concurrency": 1, "options": ["--prefetch-multiplier=4"]}
    victim, busy = (worker(name, queues=[name], **fetching) for name in ("victim", "busy"))
    held = [team.held.s(name).set(queue=name) for name in ("victim", "busy")]
    behind = [team.copy.s(f"{name}{n}").set(queue=name) for name in ("victim", "busy") for n in range(3)]
    execution = start("SCAN", jobs=[*held, *behind])
    wait_for(lambda: redis.hlen("unacked") == 6, "one to run and two to be fetched by each", log=busy.log)
    wait_for(lambda: pids(log, "victim") and pids(log, "busy"), "a job of each to run", log=busy.log)
    victim.kill()
    let_end(log, "victim", 2)
    heir = worker("heir", concurrency=1, queues=[WORK, TICKS, "victim", "busy"])
    wait_for(lambda: execution.tasks.filter(status="Success").count() == 7, "all but one to end", log=heir.log)
    let_end(log, "busy")
    ends(execution, "Success", heir)
    once, twice = ("Success", 0, 0, ""), ("Success", 1, 1, "")
    names = {one.args[0] for one in behind}
    assert rows(execution) == {**dict.fromkeys(names, once), "busy": once, "victim": twice}
    assert runs(log) == {**{f"copy {name}": 1 for name in names}, "held busy": 1, "held victim": 2}


@pytest.mark.slow
def test_a_run_that_was_taken_for_dead_and_comes_back_changes_nothing(worker: Start, log: Path) -> None:
    sleeper = worker("sleeper", concurrency=1, queues=[WORK, TICKS, JOBS, "sleeper"])
    execution = start("SCAN", jobs=[team.held.s("a")])
    wait_for(lambda: pids(log, "a"), "the job to run", log=sleeper.log)
    wait_for(lambda: rows(execution)["a"][0] == "Running", "that to be known", log=sleeper.log)
    sleeper.signal(signal.SIGSTOP)
    heir = worker("heir")
    wait_for(lambda: len(pids(log, "a")) == 2, "the heir to run it", log=heir.log)
    again = ("Running", 1, 1, "its process died")
    wait_for(lambda: rows(execution)["a"] == again, "that to be known", log=heir.log)
    second = Job.objects.filter(task__execution=execution.pk).values("state", "run", "node", "process").get()
    let_end(log, "a", 1)
    sleeper.signal(signal.SIGCONT)
    after = start("SCAN", jobs=[team.copy.s("after").set(queue="sleeper")])
    wait_for(lambda: rows(after)["after"][0] == "Success", "what came behind the late end", log=sleeper.log)
    assert rows(execution) == {"a": again}
    assert Job.objects.filter(task__execution=execution.pk, **second).exists()
    assert len(pids(log, "a")) == 2
    let_end(log, "a", 2)
    ends(execution, "Success", heir)
    assert rows(execution) == {"a": ("Success", 1, 1, "")}
    final = execution.history.exclude(to_status="Running")
    assert list(final.values_list("to_status", flat=True)) == ["Success"]
    assert len(pids(log, "a")) == 2


def test_a_child_that_is_killed_costs_its_own_job_a_run_and_no_other(worker: Start, log: Path) -> None:
    member = worker(concurrency=3)
    execution = start("SCAN", jobs=[team.held.s("a"), team.held.s("b")])
    wait_for(lambda: pids(log, "a") and pids(log, "b"), "both to run", log=member.log)
    os.kill(pids(log, "a")[0], signal.SIGKILL)
    wait_for(lambda: len(pids(log, "a")) == 2, "it to run again", log=member.log)
    let_end(log, "a", 2)
    let_end(log, "b")
    ends(execution, "Success", member)
    assert not member.died()
    assert rows(execution) == {"a": ("Success", 1, 1, ""), "b": ("Success", 0, 0, "")}
    assert (len(pids(log, "a")), len(pids(log, "b"))) == (2, 1)


def test_a_redis_that_is_emptied_while_jobs_run_and_wait_makes_none_run_twice(
    worker: Start, redis: Redis, log: Path
) -> None:
    member = worker(concurrency=2)
    waiting = [str(number) for number in range(300)]
    execution = start("SCAN", jobs=[team.held.s("a"), team.held.s("b"), *map(team.copy.s, waiting)])
    wait_for(lambda: pids(log, "a") and pids(log, "b"), "two to run", log=member.log)
    redis.flushall()
    let_end(log, "a")
    let_end(log, "b")
    ends(execution, "Success", member)
    assert rows(execution) == dict.fromkeys(["a", "b", *waiting], ("Success", 0, 0, ""))
    assert runs(log) == Counter(["held a", "held b", *(f"copy {name}" for name in waiting)])


@pytest.mark.slow
def test_a_redis_that_is_restored_from_an_older_snapshot_makes_none_run_after_its_end(
    worker: Start, redis: Redis, log: Path
) -> None:
    """Its snapshot has the messages of jobs that have ended since, and lacks those of jobs that wait."""
    snapshot = servers.redis.directory / "appendonlydir"
    early, late = [f"early {n}" for n in range(50)], [f"late {n}" for n in range(50)]
    held = [team.held.s("a"), team.held.s("b")]
    first = start("SCAN", jobs=[*held, *map(team.copy.s, early)])  # all are sent: no worker says how fast it is
    member = worker(concurrency=2)
    wait_for(lambda: pids(log, "a") and pids(log, "b"), "two to run", log=member.log)
    old = shutil.copytree(snapshot, log.with_name("old"))
    let_end(log, "a")
    let_end(log, "b")
    ends(first, "Success", member)
    second = start("SCAN", jobs=[team.held.s("c"), team.held.s("d"), *map(team.copy.s, late)])
    wait_for(lambda: pids(log, "c") and pids(log, "d"), "two others to run", log=member.log)
    servers.redis.kill()
    shutil.rmtree(snapshot)
    shutil.copytree(old, snapshot)
    servers.redis.start()
    assert redis.llen(JOBS) + redis.hlen("unacked") >= len(early), "the messages of jobs that have ended"
    let_end(log, "c")
    let_end(log, "d")
    ends(second, "Success", member)
    wait_for(lambda: not redis.llen(JOBS) and not redis.hlen("unacked"), "all messages to be read", log=member.log)
    done = Counter(line for line in log.read_text().splitlines() if line.startswith("copy"))
    assert done == Counter(f"copy {name}" for name in [*early, *late])
    assert [len(pids(log, name)) for name in "abcd"] == [1, 1, 1, 1]


@pytest.mark.slow
def test_a_job_that_kills_its_process_each_time_ends_as_error_after_max_attempts(worker: Start, log: Path) -> None:
    member = worker()
    execution = start("SCAN", jobs=[team.kills_its_process.s("a"), team.copy.s("b")])
    ends(execution, "Error", member)
    why = "it has begun 3 times, which is as often as it may: see max_attempts"
    assert rows(execution) == {"a": ("Error", 2, 2, why), "b": ("Success", 0, 0, "")}
    assert Counter(log.read_text().splitlines()) == {"kills a": 3, "copy b": 1}
    assert not member.died()


@pytest.mark.slow
def test_what_celery_drops_ends_as_what_it_is_and_says_why(worker: Start, log: Path) -> None:
    member = worker(concurrency=1)
    first = start("SCAN", jobs=[team.held.s("is terminated")])
    wait_for(lambda: "held is" in log.read_text(), "the first to run", log=member.log)
    others = start(
        "SCAN",
        jobs=[
            team.copy.s("is revoked"),
            team.copy.s("expires").set(expires=0.01),
            team.copy.s("takes too long", 600).set(time_limit=10),
        ],
    )
    unknown = record("SCAN", [[NewJob("tests.nobody", ["is unknown"])]])
    jobs = {job.args[0]: job.task.job_id for job in Job.objects.select_related("task")}
    app.control.revoke(jobs["is revoked"])
    app.control.revoke(jobs["is terminated"], terminate=True)
    for execution, status in ((first, "Stopped"), (others, "Error"), (unknown, "Error")):
        ends(execution, status, member)
    assert rows(first, others, unknown) == {
        "is terminated": ("Stopped", 0, 0, "it was revoked while it ran"),
        "is revoked": ("Stopped", 0, 0, "it was revoked"),
        "expires": ("Stopped", 0, 0, "it expired before it began"),
        "takes too long": ("Error", 0, 0, "TimeLimitExceeded: TimeLimitExceeded(10,)"),
        "is unknown": ("Error", 0, 0, "the worker that got it knows no task 'tests.nobody'"),
    }
    assert runs(log) == {"held is": 1, "copy takes": 1}
    assert not member.died()
