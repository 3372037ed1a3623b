"""The traffic of the example: the executions it starts and keeps."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from examples import mirror, traffic
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs import TrackedExecution, start
from harbor_refresh.tasks.models import Job

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture(autouse=True)
def refreshed_at_once(settings: Settings) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every wait of the traffic ends at once."""
    traffic.ended.set()
    yield
    traffic.ended.clear()


def finish(execution: TrackedExecution, status: str = "Success") -> None:
    tasks = execution.tasks.values_list("pk", flat=True)
    report([Report(pk, status, 1) for pk in tasks])


def test_a_mirror_is_a_replication_whose_jobs_go_to_their_own_queue() -> None:
    execution = traffic.start_mirror()
    execution.refresh_from_db()
    assert (execution.vendor_type, execution.trigger, execution.status) == ("REPLICATION", "SCHEDULE", "Running")
    assert execution.extra_attrs == traffic.LABEL
    jobs = Job.objects.filter(task__execution=execution)
    assert jobs.count() in traffic.SIZES
    assert {(job.name, job.options["queue"]) for job in jobs} == {("examples.replicate", "examples")}
    assert set(jobs.values_list("state", flat=True)) == {"sent"}


def test_the_oldest_ended_mirrors_are_deleted_with_their_jobs_and_no_other_executions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "KEEP", 2)
    foreign = start("REPLICATION", jobs=[mirror.replicate.s("library/alpine", "1.0")])
    unfinished, *ended, last = (traffic.start_mirror() for _ in range(5))
    for execution in (foreign, *ended, last):
        finish(execution)
    traffic.delete_the_oldest()
    left = {foreign.pk, unfinished.pk, last.pk}
    assert set(TrackedExecution.objects.values_list("pk", flat=True)) == left
    assert set(Task.objects.values_list("execution", flat=True)) == left
    assert Job.objects.count() == Task.objects.count()


def test_no_mirror_is_started_while_three_are_unfinished() -> None:
    for _ in range(traffic.UNFINISHED):
        traffic.start_mirror()
    traffic.make_traffic()
    assert traffic.mirrors().count() == traffic.UNFINISHED


def test_some_mirrors_are_stopped(no_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.05)
    traffic.make_traffic()
    assert traffic.mirrors().get().status == "Stopped"


def test_sometimes_the_last_failed_mirror_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = traffic.start_mirror()
    finish(failed, "Error")
    assert traffic.mirrors().get().status == "Error"
    monkeypatch.setattr("random.random", lambda: 0.2)
    traffic.make_traffic()
    assert [one.status for one in traffic.mirrors()] == ["Running", "Running"]
    assert Job.objects.filter(task__execution=failed, task__status="Pending", task__status_revision=2).exists()
