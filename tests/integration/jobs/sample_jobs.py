"""Jobs in the situations these tests begin with, under the clock of the test; and all that is known of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import CODES, is_final
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.lifecycle.admission import begin
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.lifecycle.publication import publish_recorded
from harbor_refresh.tasks.jobs.records.record import Acknowledged, JobRecord
from harbor_refresh.tasks.jobs.records.run import Run, Verdict
from harbor_refresh.tasks.models import Job
from tests.integration.redis_state import MEMORY, PREFIX, Clock, Redis, whole_redis

NOW = 1_000_000_000_000
SECOND = 1_000_000
DAY = 24 * 3600
#: A moment longer than a node may be silent.
TOO_LONG = 10.000_001
#: The parts of a record of a job that runs, and of one that waits for another try and should have run by now.
RUNS: dict[str, Any] = {"acknowledged": (0, "Running"), "ago": 3600}
WAITS: dict[str, Any] = {"status": "Scheduled", "revision": 1, "acknowledged": (1, "Scheduled"), "ago": TOO_LONG}


class Outbox:
    """What is published, in the place of a broker. One that `is_away` is not asked: its messages are recorded."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.is_away = False

    def publish(self, messages: Sequence[Message]) -> None:
        self.messages += messages

    def publish_after_commit(self, **which: Any) -> None:
        if not self.is_away:
            publish_recorded(self.publish, **which)

    def taken(self) -> list[tuple[str, int, int]]:
        """What has come since somebody looked: job, revision and runs so far."""
        messages, self.messages = self.messages, []
        return sorted((one.job, one.revision, one.runs) for one in messages)


def recorded(*jobs: str, **options: Any) -> Execution:
    """An execution of these jobs, each by itself."""
    return start("SCAN", [[NewJob("a.job", job_id=job, **options)] for job in jobs]).execution


def chained(*jobs: str, takes_result: bool = True) -> Execution:
    steps = [NewJob("a.job", [job], job_id=job, takes_result=takes_result) for job in jobs]
    return start("SCAN", [steps]).execution


def unpublished(outbox: Outbox, *jobs: str, ago: float = 60, **options: Any) -> Execution:
    """Jobs whose starter died so many seconds ago, before it had published them."""
    outbox.is_away = True
    execution = recorded(*jobs, **options)
    outbox.is_away = False
    aged(execution, ago)
    return execution


def aged(execution: Execution, ago: float = 60) -> None:
    """Its jobs were recorded so many seconds ago."""
    execution.tasks.update(creation_time=timezone.now() - timedelta(seconds=ago))


def stands(job: str, status: str, revision: int = 0, run_count: int = 0) -> None:
    """The row of its task, as reports would have left it."""
    end = timezone.now() if is_final(status) else None
    told: dict[str, Any] = {
        "status": status,
        "status_code": CODES[status],
        "status_revision": revision,
        "run_count": run_count,
    }
    told |= {"end_time": end}
    assert Task.objects.filter(job_id=job).update(**told) == 1


def record(
    job: str = "j",
    status: str = "Running",
    revision: int = 0,
    node: str = "",
    acknowledged: tuple[int, str] | tuple[int, str, float] | None = None,
    *,
    runs: int = 1,
    ago: float = 0.0,
    sent: bool = True,
    message: str = "",
    task_id: int | None = None,
    renewed: float | None = None,
    asked: bool = False,
) -> JobRecord:
    """Of a job that was heard of so many seconds ago, when the test began. So it was when this was acknowledged,
    or then. The lease of a run on a node that is dead or gone has just run out, that of another is in force."""
    at = NOW - round(ago * SECOND)
    if renewed is None:
        renewed = {"dead": TOO_LONG, "gone": TOO_LONG, "old": 10}.get(node, 0)
    last = None
    if acknowledged:
        last_revision, last_status, *last_ago = acknowledged
        last = Acknowledged(last_revision, last_status, NOW - round(last_ago[0] * SECOND) if last_ago else at)
    pk = Task.objects.get(job_id=job).pk if task_id is None else task_id
    lease = NOW - round(renewed * SECOND) if node else 0
    return JobRecord(job, revision, status, runs, at, node, pk, last, sent, message, lease, asked)


def write(redis: Redis, *records: JobRecord) -> None:
    redis.hset(f"{PREFIX}jobs", mapping={one.job: one.text for one in records})


def alive(redis: Redis, node: str, clock: Clock) -> None:
    """This node has given a sign of life, and renewed the leases of what it runs."""
    redis.zadd(f"{PREFIX}nodes", {node: clock.now})
    redis.hset(f"{PREFIX}presence", "heard", clock.now)
    for job, text in redis.hgetall(f"{PREFIX}jobs").items():
        one = JobRecord.read(job.decode(), text.decode())
        if one and one.is_running and one.node == node:
            write(redis, replace(one, renewed=clock.now))


def known(redis: Redis) -> dict[str, Any]:
    """All that Redis and the database know of jobs. Who has a message is told by name, not since when."""
    there = whole_redis(redis)
    tasks = Task.objects.order_by("pk")
    has_message = Job.objects.filter(published_at__isnull=False).values_list("task__job_id", flat=True)
    return {
        "records": {
            job: JobRecord.read(job, text) for job, text in there.get("jobs", {}).items() if job != MEMORY
        },
        "tasks": {
            task.job_id: (task.status, task.status_revision, task.run_count, task.status_message) for task in tasks
        },
        "published": set(has_message),
    }


def state(
    tasks: dict[str, tuple[str, int, int, str]],
    records: Sequence[JobRecord] = (),
    *,
    unpublished: Sequence[str] = (),
) -> dict[str, Any]:
    """What `known` answers."""
    return {
        "records": {one.job: one for one in records},
        "tasks": tasks,
        "published": set(tasks) - set(unpublished),
    }


def tasks_refuse(condition: str, sqlstate: str = "P0001") -> None:
    """Whoever updates a row of task of which this is true gets an error."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no more' USING ERRCODE = '{sqlstate}'; END $$;"
            f"CREATE TRIGGER refuse BEFORE UPDATE ON task FOR EACH ROW WHEN ({condition})"
            " EXECUTE FUNCTION refuse()"
        )


def tasks_refuse_no_more() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse CASCADE")


class Port:
    """Where the database is. Nobody finds it while it is `away`."""

    def __init__(self) -> None:
        self._port = connection.settings_dict["PORT"]

    def away(self) -> None:
        connection.close()
        connection.settings_dict["PORT"] = "1"

    def back(self) -> None:
        connection.settings_dict["PORT"] = self._port


@contextmanager
def database_port() -> Iterator[Port]:
    port = Port()
    try:
        yield port
    finally:
        port.back()


def begun(message: Message, node: str = "n") -> tuple[Verdict, Run]:
    """What becomes of a message that a worker gets."""
    found = begin(message_header.received(message.job, message_header.of(message)[message_header.NAME]), node)
    return found.verdict, found.run
