"""execution.wait(): a transaction holds the messages of its jobs back, so it cannot wait for their end."""

import pytest
from django.db import transaction

from harbor_refresh.executions.errors import NotCommitted, StillRunning
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.tasks.jobs import TrackedExecution
from tests.integration.jobs.sample_jobs import Outbox, recorded

pytestmark = pytest.mark.usefixtures("database", "clock")


def tracked(*jobs: str) -> TrackedExecution:
    return TrackedExecution.objects.get(pk=recorded(*jobs).pk)


def fails(execution: TrackedExecution) -> None:
    report(Report(pk, "Error", 1) for pk in execution.tasks.values_list("pk", flat=True))
    execution.refresh_from_db()


def test_jobs_that_this_transaction_has_started_are_not_waited_for(outbox: Outbox) -> None:
    with transaction.atomic():
        execution = tracked("a")
        with pytest.raises(NotCommitted, match="has not ended: call wait"):
            execution.wait(timeout=0)
        with transaction.atomic(), pytest.raises(NotCommitted):
            execution.wait(timeout=0)
    assert outbox.taken() == [("a", 0, 0)]
    with pytest.raises(StillRunning):
        execution.wait(timeout=0)


def test_jobs_that_this_transaction_tries_again_are_not_waited_for(outbox: Outbox) -> None:
    execution = tracked("a")
    fails(execution)
    with transaction.atomic():
        assert execution.retry_failed() == 1
        with pytest.raises(NotCommitted):
            execution.wait(timeout=0)


def test_jobs_that_were_committed_before_are_waited_for_outside_a_transaction_alone(outbox: Outbox) -> None:
    """The transaction may have added jobs to a descendant, or its locks may hold the jobs up."""
    execution = tracked("a")
    with transaction.atomic(), pytest.raises(NotCommitted):
        execution.wait(timeout=0)
    execution.stop()
    with transaction.atomic():
        assert execution.wait(timeout=0) == "Stopped"


def test_an_execution_without_jobs_has_ended_before_the_commit(outbox: Outbox) -> None:
    with transaction.atomic():
        assert tracked().wait() == "Success"
