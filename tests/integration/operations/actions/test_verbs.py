"""Each verb on many executions: what it changes, what it leaves, and that it does so by the use case for one."""

import json

import pytest

from examples.simulation.invariants import violations
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Execution, Quarantine, StatusChange, Task
from harbor_refresh.executions.news.audit import Word
from harbor_refresh.executions.queries.filters import has_jobs
from harbor_refresh.tasks.broker.celery_queues import JOBS
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.queue import execution_queue
from tests.integration.operations.actions.sample_bulk import reported, sent, statuses, with_jobs
from tests.integration.redis_state import Redis
from tests.integration.sample_actions import asked, result, work_off
from tests.integration.sample_executions import fails_with, made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")


def job_runs(job: str) -> None:
    jobs = Job.objects.filter(task__job_id=job)
    assert jobs.update(state=JobState.RUNNING, run=1, node=1, process=1) == 1


def test_thousands_of_executions_are_stopped_with_their_tasks_and_jobs() -> None:
    executions, others = with_jobs(3_000), with_jobs(3, "GC")
    ended = with_jobs(100, "SCAN_ALL")
    reported(ended, "Success")
    job_runs("SCAN-1500-0")
    job_runs("GC-1-0")
    action = asked(Word.STOP, vendor_type="SCAN", statuses=("Running",))
    work_off()
    assert result(action) == {"status": "Success", "changed": 3_000}
    assert statuses() == {"Stopped": 3_000, "Running": 3, "Success": 100}
    assert not Task.objects.filter(vendor_type="SCAN").exclude(status="Stopped").exists()
    assert StatusChange.objects.filter(execution__in=executions).count() == 3_000
    assert not Job.objects.filter(task__vendor_type="SCAN").exclude(state=JobState.ENDED).exists()
    assert Job.objects.get(task__job_id="GC-1-0").state == JobState.RUNNING
    assert [one for one in violations(broker=lambda: 0, at_most=5) if one.name != "K2"] == []
    assert len(others) == 3


def test_a_stop_leaves_what_has_ended_and_stops_what_has_no_tasks() -> None:
    ended, empty, quarantined = made()[0], create(NewExecution("TEST")), made()[0]
    reported([ended], "Error")
    Quarantine.objects.create(execution=quarantined, reason="x", attempts=5)
    action = asked(Word.STOP)
    work_off()
    assert result(action) == {"status": "Success", "changed": 2, "skipped": 1}
    assert [status_of(one) for one in (ended, empty, quarantined)] == ["Error", "Stopped", "Stopped"]
    assert not Quarantine.objects.exists()


def test_a_retry_runs_failed_jobs_once_more_and_leaves_the_rest(redis: Redis) -> None:
    failed, ended, going = with_jobs(7), with_jobs(5, "DONE"), with_jobs(2, "GOING")
    reported(failed, "Error")
    reported(ended, "Success")
    without_jobs = made(vendor="RUNNER")[0]
    reported([without_jobs], "Error")
    action = asked(Word.RETRY)
    work_off()
    assert result(action) == {"status": "Success", "changed": 7, "skipped": 8}
    assert statuses() == {"Running": 9, "Success": 5, "Error": 1}
    assert {status_of(one) for one in (*failed, *going)} == {"Running"}
    messages = [json.loads(raw)["headers"]["id"] for raw in redis.lrange(JOBS, 0, -1)]
    assert sorted(messages) == [f"SCAN-{number}-0" for number in range(7)]


def test_stopped_jobs_of_many_executions_run_once_more_and_the_rest_is_left(redis: Redis) -> None:
    stopped, failed, ended = with_jobs(7), with_jobs(3, "FAILED"), with_jobs(2, "DONE")
    reported(failed, "Error")
    reported(ended, "Success")
    empty = create(NewExecution("EMPTY"))
    asked(Word.STOP)
    work_off()
    assert statuses() == {"Stopped": 8, "Error": 3, "Success": 2}
    action = asked(Word.RESUME)
    work_off()
    assert result(action) == {"status": "Success", "changed": 7, "skipped": 6}
    assert statuses() == {"Running": 7, "Stopped": 1, "Error": 3, "Success": 2}
    assert {status_of(one) for one in stopped} == {"Running"}
    assert status_of(empty) == "Stopped"
    messages = [json.loads(raw)["headers"]["id"] for raw in redis.lrange(JOBS, 0, -1)]
    assert sorted(messages) == [f"SCAN-{number}-0" for number in range(7)]


def test_a_retry_and_a_resumption_of_a_parent_reach_the_jobs_of_its_children(redis: Redis) -> None:
    """It has no job of its own. One of its children has failed and one was stopped; a third execution is stopped
    while it is open, and has no jobs at all."""
    parent = create(NewExecution("PARENT"))
    for job, status in (("failed", "Error"), ("stopped", "Stopped")):
        child = create(NewExecution("CHILD", parent=parent.pk, tasks=[NewTask(job)]))
        task = child.tasks.get()
        sent(task.pk).save(force_insert=True)
        reported([child], status)
    refresh([parent.pk])
    empty = create(NewExecution("PARENT", open_seconds=3600))
    stop(empty.pk)
    assert [status_of(one) for one in (parent, empty)] == ["Error", "Stopped"]
    assert list(Execution.objects.filter(has_jobs(), pk__in=[parent.pk, empty.pk])) == [parent]

    expected = {Word.RETRY: {"changed": 1, "skipped": 1}, Word.RESUME: {"changed": 1, "skipped": 1}}
    for verb, counts in expected.items():
        action = asked(verb, vendor_type="PARENT")
        work_off()
        assert result(action) == {"status": "Success"} | counts
    assert [status_of(one) for one in (parent, empty)] == ["Running", "Success"]
    messages = [json.loads(raw)["headers"]["id"] for raw in redis.lrange(JOBS, 0, -1)]
    assert sorted(messages) == ["failed", "stopped"]


@pytest.mark.parametrize(
    ("verb", "statuses_of_jobs", "status_of_child", "again"),
    [
        (Word.RESUME, ["Error", "Stopped"], "Error", "1"),
        (Word.RETRY, ["Error", "Running"], "Running", "0"),
    ],
)
def test_the_status_of_a_child_does_not_hide_the_jobs_that_run_again(
    verb: str, statuses_of_jobs: list[str], status_of_child: str, again: str, redis: Redis
) -> None:
    parent = create(NewExecution("PARENT"))
    child = create(NewExecution("CHILD", parent=parent.pk, tasks=[NewTask("0"), NewTask("1")]))
    for task, status in zip(child.tasks.order_by("pk"), statuses_of_jobs, strict=True):
        sent(task.pk).save(force_insert=True)
        report([Report(task.pk, status)])
    refresh([child.pk])
    refresh([parent.pk])
    assert status_of(child) == status_of_child
    action = asked(verb, vendor_type="PARENT")
    work_off()
    assert result(action) == {"status": "Success", "changed": 1}
    assert [json.loads(raw)["headers"]["id"] for raw in redis.lrange(JOBS, 0, -1)] == [again]


def test_a_refresh_brings_each_status_to_what_its_tasks_say() -> None:
    drifted, right = [made()[0] for _ in range(5)], [made()[0] for _ in range(4)]
    tasks = Task.objects.filter(execution__in=drifted)
    report([Report(pk, "Success") for pk in tasks.values_list("pk", flat=True)])
    action = asked(Word.REFRESH)
    work_off()
    assert result(action) == {"status": "Success", "changed": 5, "skipped": 4}
    assert statuses() == {"Success": 5, "Running": len(right)}


def test_a_refresh_that_fails_names_the_execution_and_marks_it(caplog: pytest.LogCaptureFixture) -> None:
    bad, good = made()[0], made()[0]
    tasks = Task.objects.filter(execution__in=[bad, good])
    report([Report(pk, "Success") for pk in tasks.values_list("pk", flat=True)])
    execution_queue().claim("n", 10)
    fails_with("23514", bad)
    action = asked(Word.REFRESH)
    work_off()
    assert result(action) == {"status": "Error", "changed": 1, "failed": 1}
    failed = f"SomeFailed: 1 execution failed, the first of them: execution {bad.pk}: no more"
    assert [one.status_message for one in action.tasks.filter(status="Error")] == [failed]
    assert f"Could not refresh execution {bad.pk}: no more" in caplog.messages
    assert execution_queue().whereabouts(f"{bad.pk}:{bad.vendor_type}").is_queued


def test_a_delete_takes_what_has_ended_with_all_that_belongs_to_it() -> None:
    ended, going = with_jobs(4, tasks=2), with_jobs(3, "GOING", tasks=2)
    reported(ended, "Success")
    half, empty = going[0], create(NewExecution("EMPTY"))
    report([Report(half.tasks.order_by("pk")[0].pk, "Error")])
    action = asked(Word.DELETE)
    work_off()
    assert result(action) == {"status": "Success", "changed": 4, "skipped": 4}
    left = {one.pk for one in (*going, empty)}
    assert set(Execution.objects.values_list("pk", flat=True)) == left | {action.pk}
    assert set(Task.objects.values_list("execution_id", flat=True)) == {*(one.pk for one in going), action.pk}
    assert Job.objects.exclude(task__execution=action).count() == 6
    assert not StatusChange.objects.filter(execution__in=ended).exists()
