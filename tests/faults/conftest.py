"""A cluster of real processes on the test's own database, and the check that ends each test."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from examples.simulation.invariants import set_aside, violations
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.broker.celery_queues import JOBS, WORK
from harbor_refresh.tasks.models.job import Job, JobState
from tests import servers
from tests.created import create_many
from tests.elsewhere import forget_connections_to_the_broker
from tests.faults.cluster import Cluster, Member
from tests.waiting import wait_for

#: Replies of Celery's remote control to a program that was killed before it read them. Celery leaves them.
REPLIES = b".reply.celery.pidbox"

#: Our keys that may exist when all work is done (tasks/queue/keys.py).
OF_NODES = {"nodes", "left", "dead", "presence"}
OF_PASSES = {"wake", "cursor", "ticked", "legacy_cursor", "legacy_rest"}
STAY = {"heat", "marks"} | OF_NODES | OF_PASSES
#: Every key that may exist when all work is done. Any other key has leaked.
EXPECTED = (
    *(f"cache:execution:refresh:{name}".encode() for name in sorted(STAY)),
    b"_kombu.binding",
    b"unacked_mutex",
    b"harbor_refresh.ticks",
    b"harbor_refresh.deliveries",
)


@pytest.fixture
def cluster(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    forget_connections_to_the_broker()
    cluster = Cluster(database, tmp_path)
    yield cluster
    cluster.end()
    crash_points.handlers.clear()
    for server in (servers.redis, servers.postgres):
        if not server.running:
            server.start()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What the jobs of tests/faults/jobs.py write, a line for each run."""
    path = tmp_path / "jobs.txt"
    path.touch()
    return path


@pytest.fixture
def worker(cluster: Cluster, log: Path) -> Callable[..., Member]:
    """Start a worker that runs the jobs of tests/faults/jobs.py."""

    def begin(name: str = "worker", *, include: Sequence[str] = (), **options: Any) -> Member:
        return cluster.worker(name, include=["tests.faults.jobs", *include], JOBS_LOG=str(log), **options)

    return begin


@pytest.fixture
def in_broker(redis: Redis) -> Callable[[], int]:
    """Count the messages that the broker still holds. A test whose broker is no Redis overrides this."""
    return lambda: redis.llen(WORK) + redis.llen(JOBS) + redis.hlen("unacked")


@pytest.fixture
def holds(redis: Redis, in_broker: Callable[[], int]) -> Callable[..., None]:
    """A check that waits until K1 to K5 hold, and fails if they do not in time."""

    def check(seconds: float = 300, *, expect_quarantine: bool = False) -> None:
        found: list[object] = []

        def all_hold() -> bool:
            found[:] = violations(broker=in_broker, at_most=5)
            found.extend(f"K5: the key {key!r} is left" for key in redis.keys("*") if not key.startswith(EXPECTED))
            found.extend(f"{job} is {job.state}" for job in Job.objects.exclude(state=JobState.ENDED)[:5])
            found.extend(f"set aside: {one}" for one in set_aside() if not expect_quarantine)
            return not found

        try:
            wait_for(all_hold, "K1 to K5 to hold", seconds=seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}: {[str(one) for one in found]}") from None

    return check


def many(count: int, tasks: int = 1) -> list[int]:
    """Create executions with their tasks, which are Pending."""
    executions = create_many(NewExecution("REPLICATION", tasks=[NewTask()] * tasks) for _ in range(count))
    return [execution.pk for execution in executions]


def succeed(ids: list[int]) -> None:
    tasks = Task.objects.filter(execution_id__in=ids).values_list("pk", flat=True)
    outcome = report([Report(pk, "Success", 1) for pk in tasks])
    assert outcome.applied == len(tasks)


def statuses() -> dict[str, int]:
    return dict(Counter(Execution.objects.values_list("status", flat=True)))


def status(execution: Execution) -> str:
    execution.refresh_from_db()
    return execution.status


def ends(execution: Execution, expected: str, member: Member | None = None) -> None:
    wait_for(lambda: status(execution) == expected, f"{execution} to be {expected}", log=member and member.log)


def runs(log: Path) -> Counter[str]:
    """How often each job has begun, by the first two words of its lines."""
    return Counter(" ".join(line.split()[:2]) for line in log.read_text().splitlines())
