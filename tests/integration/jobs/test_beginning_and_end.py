"""Where the life of an execution of jobs begins, and what is left of it when it is deleted."""

import pytest

from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs.lifecycle.admission import begin
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import ReceivedMessage, Verdict
from harbor_refresh.tasks.models import Job
from tests.integration.database_state import rows
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.mark.parametrize("chains", [[], [[]]])
def test_an_execution_of_no_jobs_has_succeeded(chains: list[list[NewJob]]) -> None:
    execution = start("SCAN", chains).execution
    execution.refresh_from_db()
    assert (execution.status, execution.status_message) == ("Success", "it had no jobs")
    assert execution.end_time is not None


def received(task: Task) -> ReceivedMessage:
    return ReceivedMessage(task.job_id, task.pk, revision=0, runs=0)


def test_a_deleted_execution_takes_its_jobs_with_it_and_none_of_them_begins_any_more(redis: Redis) -> None:
    execution = start("SCAN", [[NewJob("a"), NewJob("b")], [NewJob("c")]]).execution
    other = start("SCAN", [[NewJob("d")]]).execution
    running, follower, waiting = execution.tasks.order_by("pk")
    begun = begin(received(running), "node")
    assert begun.verdict == Verdict.GO
    assert delete([execution.pk]) == 1
    assert set(rows(Execution)) == {other.pk}
    assert set(Job.objects.values_list("name", flat=True)) == {"d"}
    assert job_records().check_in(begun.run), "it is asked to stop"
    for task in (follower, waiting):
        assert begin(received(task), "node").verdict == Verdict.OVER
    assert begin(received(other.tasks.get()), "node").verdict == Verdict.GO
