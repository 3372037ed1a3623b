"""The table of the reaper, every row, over a real Redis and a real database."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs.lifecycle import task_state
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.lifecycle.task_state import TaskState
from harbor_refresh.tasks.jobs.records.record import UNKNOWN
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.repair import reaper
from harbor_refresh.tasks.jobs.repair.reaper import Reaped, reap
from harbor_refresh.tasks.models import Job
from tests import servers
from tests.integration.redis_state import MEMORY, Redis

pytestmark = pytest.mark.usefixtures("database", "redis")

JOBS = "cache:execution:refresh:jobs"
HOUR = 3600 * 1_000_000


@pytest.fixture(autouse=True)
def since(redis: Redis) -> int:
    """Redis remembers since two days ago."""
    then = job_records().memory().now - 48 * HOUR
    redis.hset(JOBS, MEMORY, f"{then}|1")
    return then


@pytest.fixture
def task() -> Task:
    """Of a job that has had its message."""
    execution = start("SCAN", [[NewJob("a.job", job_id="j")]]).execution
    assert Job.objects.filter(published_at__isnull=False).count() == 1
    return execution.tasks.get()


def record(task: Task, *parts: Any, at: int, acknowledged: str = "") -> str:
    revision, status, node = parts
    return f"{revision}|{status}|1|{at}|{at}|{node}|{task.pk}|{acknowledged}|1|0|why"


@dataclass(frozen=True)
class Case:
    """`record` is (revision, status, node), and how long ago it checked in; `acknowledged` its last report."""

    record: tuple[int, str, str]
    hours_ago: float = 0.0
    acknowledged: tuple[int, str] | None = None
    acknowledged_hours_ago: float | None = None
    then: Reaped = field(default_factory=Reaped)
    is_left: bool = True
    task: tuple[str, int, str] = ("Pending", 0, "")


CASES = {
    "nothing has landed yet: it is reported": Case(
        (0, "Running", "n"), then=Reaped(reported=1), task=("Running", 0, "why")
    ),
    "its status is ahead: it is reported again, and forgotten, for it has ended": Case(
        (0, "Success", "n"),
        acknowledged=(0, "Running"),
        then=Reaped(reported=1),
        is_left=False,
        task=("Success", 0, "why"),
    ),
    "its revision is ahead, though its code is behind": Case(
        (1, "Scheduled", ""), acknowledged=(0, "Error"), then=Reaped(reported=1), task=("Scheduled", 1, "why")
    ),
    "only its check-in is ahead": Case(
        (0, "Running", "n"),
        acknowledged=(0, "Running"),
        acknowledged_hours_ago=30,
        then=Reaped(reported=1),
        task=("Running", 0, "why"),
    ),
    "equal and final: it is forgotten": Case(
        (0, "Success", "n"), acknowledged=(0, "Success"), then=Reaped(forgotten=1), is_left=False
    ),
    "equal, not final, and heard of lately: it is left": Case(
        (0, "Running", "n"), hours_ago=23.9, acknowledged=(0, "Running"), acknowledged_hours_ago=23.9
    ),
    "equal, not final, and silent for a day: it fails, with that reason": Case(
        (0, "Running", "n"),
        hours_ago=24.1,
        acknowledged=(0, "Running"),
        acknowledged_hours_ago=24.1,
        then=Reaped(failed=1, reported=1),
        is_left=False,
        task=("Error", 0, "nothing was heard of it for 24 hours"),
    ),
    "behind a final status that has landed: it is forgotten": Case(
        (0, "Running", "n"), acknowledged=(0, "Stopped"), then=Reaped(taken=1), is_left=False
    ),
    "behind a later revision that has landed: it is brought there": Case(
        (0, "Running", "n"), acknowledged=(1, "Pending"), then=Reaped(taken=1)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_row_of_the_table(name: str, redis: Redis, task: Task) -> None:
    case = CASES[name]
    now = job_records().memory().now
    at = now - round(case.hours_ago * HOUR)
    acknowledged = ""
    if case.acknowledged:
        ago = case.hours_ago if case.acknowledged_hours_ago is None else case.acknowledged_hours_ago
        acknowledged = f"{case.acknowledged[0]} {case.acknowledged[1]} {now - round(ago * HOUR)}"
    redis.hset(JOBS, "j", record(task, *case.record, at=at, acknowledged=acknowledged))
    assert reap() == case.then
    assert (redis.hexists(JOBS, "j") == 1) is case.is_left
    task.refresh_from_db()
    assert (task.status, task.status_revision, task.status_message) == case.task
    assert reap() == Reaped() or case.is_left, "what was settled is settled"


def test_a_job_that_had_begun_and_has_no_record_is_looked_for_and_not_ended(task: Task) -> None:
    """A process that runs it says so within a heartbeat; else recovery gives it back."""
    Task.objects.filter(pk=task.pk).update(status="Running", status_code=2, status_revision=3, run_count=3)
    assert reap() == Reaped(lost=1)
    found = job_records().of(["j"])["j"]
    assert (found.node, found.revision, found.runs, found.is_delivered) == (UNKNOWN, 3, 4, True)
    assert reap() == Reaped()
    task.refresh_from_db()
    assert (task.status, task.status_revision) == ("Running", 3)


def test_a_job_that_ends_while_it_is_about_to_be_looked_for_is_not(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    Task.objects.filter(pk=task.pk).update(status="Running", status_code=2)

    def end_and_ask(task_ids: Sequence[int]) -> dict[int, TaskState]:
        report([Report(task.pk, "Success", 0)])
        return task_state.task_states(task_ids)

    monkeypatch.setattr(reaper, "task_states", end_and_ask)
    assert reap() == Reaped()
    assert job_records().of(["j"]) == {}


def test_a_job_whose_message_was_sent_before_redis_was_emptied_gets_another(redis: Redis, task: Task) -> None:
    assert reap() == Reaped()
    Job.objects.filter(pk=task.pk).update(published_at=task.creation_time)
    redis.flushall()
    assert reap() == Reaped(unsent=1)
    assert Job.objects.get(pk=task.pk).published_at is None


def test_a_job_whose_row_is_locked_is_left_to_the_next_pass(database: str, redis: Redis, task: Task) -> None:
    """It is published, tried again or reported at this moment: a pass that waited might deadlock with that."""
    start("SCAN", [[NewJob("a.job", job_id="k")]])
    Job.objects.update(published_at=task.creation_time)
    redis.flushall()
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution_job WHERE task_id <> %s FOR NO KEY UPDATE", [task.pk])
        assert reap() == Reaped(unsent=1)
        other.execute("SELECT FROM execution_job WHERE task_id = %s FOR NO KEY UPDATE", [task.pk])
    assert reap() == Reaped(unsent=1)
    assert not Job.objects.exclude(published_at=None).exists()


def test_a_record_that_nobody_can_read_is_dropped(redis: Redis, task: Task) -> None:
    redis.hset(JOBS, "x", "nonsense")
    assert reap() == Reaped(unreadable=1)
    assert redis.hkeys(JOBS) == [MEMORY.encode()]


def test_a_job_that_waits_for_another_try_and_has_no_record_is_not_lost(task: Task) -> None:
    Task.objects.filter(pk=task.pk).update(status="Scheduled", status_code=1, status_revision=1)
    assert reap() == Reaped()
    Job.objects.update(published_at=task.creation_time - timedelta(days=2))
    assert reap(lambda _: ()) == Reaped(unsent=1)


def test_a_message_that_waits_in_the_broker_is_not_sent_again_however_long(task: Task) -> None:
    Job.objects.filter(pk=task.pk).update(published_at=timezone.now() - timedelta(hours=25))
    asked: list[int] = []

    def waits(jobs: Sequence[Job]) -> set[int]:
        asked.extend(job.pk for job in jobs)
        return {task.pk}

    assert reap() == reap(waits) == Reaped()
    assert asked == [task.pk]
    assert reap(lambda _: ()) == Reaped(unsent=1)


def test_a_job_that_waits_and_has_a_record_is_sent_again_if_its_message_waits_nowhere(
    redis: Redis, task: Task
) -> None:
    """It waits for another try, say, and the broker has lost that message. To wait is no silence."""
    Task.objects.filter(pk=task.pk).update(status="Scheduled", status_code=1, status_revision=1)
    now = job_records().memory().now
    long_ago = now - 25 * HOUR
    redis.hset(JOBS, "j", record(task, 1, "Scheduled", "", at=long_ago, acknowledged=f"1 Scheduled {long_ago}"))
    assert reap() == Reaped()
    assert reap(lambda _: ()) == Reaped(unsent=1)
    found = job_records().of(["j"])["j"]
    assert (found.sent, found.status, found.revision) == (False, "Scheduled", 1)


def test_a_message_that_was_sent_for_later_is_due_later(task: Task) -> None:
    then = timezone.now() - timedelta(hours=2)
    Job.objects.filter(pk=task.pk).update(published_at=then, options={"countdown": 2 * 3600})
    assert reap(lambda _: ()) == Reaped()
    Job.objects.filter(pk=task.pk).update(published_at=then - timedelta(hours=2))
    assert reap(lambda _: ()) == Reaped(unsent=1)


def test_so_is_one_that_was_sent_for_a_moment(task: Task) -> None:
    now = timezone.now()
    eta = now + timedelta(hours=1)
    then = now - timedelta(hours=2)
    Job.objects.filter(pk=task.pk).update(published_at=then, options={"eta": eta.isoformat()})
    assert reap(lambda _: ()) == Reaped()
    Job.objects.filter(pk=task.pk).update(options={"eta": (now - timedelta(hours=1)).isoformat()})
    assert reap(lambda _: ()) == Reaped(unsent=1)


def test_a_record_that_cannot_be_settled_starves_no_other(redis: Redis) -> None:
    """One task's row refuses every report; it is on a page with others, and there are other pages."""
    execution = start("SCAN", [[NewJob("a.job", job_id=f"j{number}")] for number in range(1200)]).execution
    tasks = list(execution.tasks.order_by("pk"))
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
            f"CREATE TRIGGER refuse BEFORE UPDATE ON task FOR EACH ROW WHEN (OLD.id = {tasks[0].pk})"
            " EXECUTE FUNCTION refuse()"
        )
    now = job_records().memory().now
    redis.hset(JOBS, mapping={one.job_id: record(one, 0, "Success", "n", at=now) for one in tasks})
    outcome = reap()
    assert (outcome.reported >= 1199, outcome.troubled >= 1) == (True, True), "a scan may meet one of them twice"
    assert set(redis.hkeys(JOBS)) == {b"j0", MEMORY.encode()}
    statuses = Counter(Execution.objects.get(pk=execution.pk).tasks.values_list("status", flat=True))
    assert statuses == {"Pending": 1, "Success": 1199}
