"""Jobs in the situations these tests begin with, and what their rows say."""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Self

from celery import Celery
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Link, Task
from harbor_refresh.executions.status import CODES, is_final
from harbor_refresh.tasks.jobs import Handle, TrackedJob, sender
from harbor_refresh.tasks.jobs.live_workers import ThisWorker
from harbor_refresh.tasks.jobs.outcomes import Outcome, Run, header_of, take
from harbor_refresh.tasks.jobs.running.handle import Begun, begin
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.models.job import Job, JobInput, Node
from tests.started import start

#: The queue of the jobs of these tests, and the id of their usual node.
QUEUE, NODE = "harbor_refresh.jobs", 1

Work = Callable[..., Any]


@dataclass(frozen=True)
class Sent:
    """A job that is picked, as pick.sql says it."""

    task_id: int
    job: str
    number: int
    name: str
    queue: str
    options: dict[str, Any]
    retries: int
    args: str
    kwargs: str

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        return replace(cls(*row), options=json.loads(row[5]))


class Outbox:
    """The messages that are sent, instead of a broker. One that `is_down` takes none."""

    def __init__(self) -> None:
        self.messages: list[Sent] = []
        self.is_down = False

    def publish(self, rows: Sequence[tuple[Any, ...]]) -> int:
        if rows and self.is_down:
            raise ConnectionError("the broker is down")
        self.messages += [Sent.of(row) for row in rows]
        return len(rows)

    def take(self) -> list[Sent]:
        messages, self.messages = self.messages, []
        return messages

    def taken(self) -> list[tuple[str, int]]:
        """What has come since the last look: job, and the runs that had begun before."""
        return sorted((one.job, one.number) for one in self.take())


class AtOnce:
    """A writer that writes each end at once."""

    def __init__(self) -> None:
        self.current: dict[Run, Handle] = {}
        self.ends: list[Outcome] = []

    def begin(self, job: Handle) -> None:
        self.current[job.run] = job

    def end(self, outcome: Outcome, _: Handle) -> None:
        self.current.pop(outcome.run, None)
        self.ends.append(outcome)
        take([outcome])
        sender.send_behind([outcome.queue], [outcome])

    def forget(self, its: Run) -> None:
        self.current.pop(its, None)


def recorded(*jobs: str, **options: Any) -> Execution:
    """Start an execution of these jobs, each by itself."""
    return start("SCAN", [[NewJob("a.job", job_id=job, **options)] for job in jobs])


def in_a_row(*jobs: NewJob, takes: JobInput = JobInput.RESULT) -> list[NewJob]:
    """These jobs as a chain: each takes the result of the one before it."""
    return [
        replace(job, needs=[NewNeed(place - 1)], takes=takes) if place else job for place, job in enumerate(jobs)
    ]


def chained(*jobs: str, takes: JobInput = JobInput.RESULT) -> Execution:
    steps = [NewJob("a.job", [job], job_id=job) for job in jobs]
    return start("SCAN", [in_a_row(*steps, takes=takes)])


def named(message: str) -> str:
    """The message with the names of jobs in the place of their tasks' ids."""
    names = {str(pk): job for pk, job in Task.objects.values_list("pk", "job_id")}
    return re.sub(r"task (\d+)", lambda found: f"task {names[found[1]]}", message)


def beats(
    node: int = NODE,
    *,
    name: str = "a worker",
    slots: int = 4,
    busy: int = 0,
    queues: Sequence[str] = (QUEUE,),
    rate: float | None = 1_000,
) -> None:
    """This node gives a sign of life."""
    run("beat", id=node, node=name, slots=slots, busy=busy, queues=list(queues), rate=rate)


def worker_of_jobs() -> ThisWorker:
    """The main process of a worker of the jobs' queue."""
    queues, found = SimpleNamespace(consume_from=[QUEUE]), ThisWorker()
    app, controller = SimpleNamespace(amqp=SimpleNamespace(queues=queues)), SimpleNamespace(concurrency=1)
    found._consumer = SimpleNamespace(app=app, pool=None, controller=controller)
    return found


def send_all() -> None:
    """The nodes of all queues do a pass."""
    queues = [*set(Job.objects.values_list("queue", flat=True))]
    sender.send_due(queues)
    sender.send_all(queues)


def nothing_has_begun_for(seconds: float) -> None:
    """The workers have been there for so long, and have begun no job."""
    Node.objects.update(began={}, started_at=Now() - timedelta(seconds=seconds))


def silent(node: int, seconds: float) -> None:
    """This node has given no sign of life for so long."""
    Node.objects.filter(pk=node).update(heard_at=Now() - timedelta(seconds=seconds))


def sent_before(seconds: float, *jobs: str) -> None:
    """The messages of these jobs were sent so long ago."""
    past = timedelta(seconds=seconds)
    assert Job.objects.filter(task__job_id__in=jobs).update(sent_at=F("sent_at") - past) == len(jobs)


def begun(message: Sent, node: int = NODE, process: int | None = None) -> Begun | None:
    """What becomes of a message that a worker gets."""
    return begin(message.task_id, message.job, message.number, node, os.getpid() if process is None else process)


def delivered(message: Sent, work: Callable[[Handle], Any], **options: Any) -> Any:
    """The message comes to this process, whose worker has an app of its own."""

    def carry_out(job: Handle, *_: Any) -> Any:
        return work(job)

    return delivered_to(carry_out, message, **options)


def delivered_to(
    function: Work, message: Sent, arguments: Any = (), headers: dict[str, str] | None = None, **options: Any
) -> Any:
    """The same, for a function that takes the arguments of the job."""
    app = Celery("a team", set_as_current=False)
    task = app.task(base=TrackedJob, name=message.name, shared=False, **options)(function)
    task.push_request(
        id=message.job,
        called_directly=False,
        args=arguments,
        kwargs={},
        delivery_info={},
        headers=headers,
        **header_of(message.task_id, message.number),
    )
    try:
        return task()
    finally:
        task.pop_request()


def rows() -> dict[str, tuple[str, int]]:
    """Where each job is, and how many of its runs have begun."""
    return {job: (state, runs) for job, state, runs in Job.objects.values_list("task__job_id", "state", "run")}


def tasks() -> dict[str, tuple[str, int, int, str]]:
    """Status, revision, number of runs and message of the task of each job."""
    found = Task.objects.order_by("pk")
    return {one.job_id: (one.status, one.status_revision, one.run_count, one.status_message) for one in found}


def statuses(execution: Execution) -> tuple[str, dict[str, str]]:
    execution.refresh_from_db()
    return execution.status, dict(execution.tasks.values_list("job_id", "status"))


def its_process_looked(
    task_id: int, check_in: str | None = None, *, number: int = 1, is_heard: bool = True
) -> list[int]:
    """The process of this run has looked, and written this. Returns its task if the run stands."""
    its = Job.objects.get(pk=task_id)
    looked = {"node": its.node, "process": its.process, "are_heard": [is_heard], "check_ins": [check_in]}
    found = run("look_at_runs", task_ids=[task_id], runs=[number], **looked, begun=[task_id])
    return [task_id] if (task_id, number) in [row[:2] for row in found] else []


def job(name: str) -> Job:
    return Job.objects.select_related("task").get(task__job_id=name)


def failed(execution: Execution, *jobs: str) -> None:
    """Another program reports that these jobs have failed."""
    for task in execution.tasks.filter(job_id__in=jobs):
        report([Report(task.pk, "Error", task.status_revision)])


def stands(name: str, status: str, revision: int = 0, run_count: int = 0) -> None:
    """The row of its task, as reports would have left it."""
    values: dict[str, Any] = {
        "status": status,
        "status_code": CODES[status],
        "status_revision": revision,
        "run_count": run_count,
        "end_time": timezone.now() if is_final(status) else None,
    }
    assert Task.objects.filter(job_id=name).update(**values) == 1


def tasks_refuse(condition: str, sqlstate: str = "P0001", *, table: str = "task") -> None:
    """Each update of a row of task, or of another table, for which this is true raises an error."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no more' USING ERRCODE = '{sqlstate}'; END $$;"
            f"CREATE TRIGGER refuse BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({condition})"
            " EXECUTE FUNCTION refuse()"
        )


def tasks_refuse_no_more() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse CASCADE")


class Port:
    """Where the database is. It is not found while it is `down`."""

    def __init__(self) -> None:
        self._port = connection.settings_dict["PORT"]

    def down(self) -> None:
        """Other threads of this process lose their connections as well."""
        with connection.cursor() as cursor:
            connection.settings_dict["PORT"] = "1"
            cursor.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        connection.close()

    def back(self) -> None:
        connection.settings_dict["PORT"] = self._port


@contextmanager
def database_port() -> Iterator[Port]:
    port = Port()
    try:
        yield port
    finally:
        port.back()


def arguments_sent(outbox: Outbox) -> list[Any]:
    """The first argument of each job whose message was sent since the last look."""
    return sorted(json.loads(one.args)[0] for one in outbox.take())


def ends(execution: Execution, status: str = "Success") -> str:
    """Its jobs end so. It is refreshed, and its ancestors after it. Returns its status."""
    jobs = execution.tasks.filter(job__isnull=False, status_code__lt=CODES["Success"])
    report([Report(one.pk, status, one.status_revision) for one in jobs])
    pk: int | None = execution.pk
    while pk:
        refresh([pk])
        pk = Link.objects.filter(pk=pk).values_list("parent", flat=True).first()
    execution.refresh_from_db()
    return execution.status
