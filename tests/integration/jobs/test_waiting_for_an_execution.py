"""execution.wait(): a transaction keeps the messages of its jobs, so it cannot wait for their end."""

from collections.abc import Callable

import pytest
from celery import Celery
from django.db import transaction

from harbor_refresh.executions.errors import NotCommitted, StillRunning
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from tests.integration.jobs.sample_jobs import Outbox, ends

app = Celery("a waiting team", set_as_current=False)

pytestmark = pytest.mark.usefixtures("database", "outbox")


@app.task(base=TrackedJob, name="a.waiting.job", shared=False)
def scan(job: Handle) -> None:
    pass


def test_jobs_that_this_transaction_has_started_are_not_waited_for(outbox: Outbox) -> None:
    with transaction.atomic():
        execution = start("SCAN", jobs=[scan.s()])
        with pytest.raises(NotCommitted, match="has not ended: call wait"):
            execution.wait(timeout=0)
        with transaction.atomic(), pytest.raises(NotCommitted):
            execution.wait(timeout=0)
    assert len(outbox.take()) == 1
    with pytest.raises(StillRunning):
        execution.wait(timeout=0)


def fails_and_is_tried_again(execution: TrackedExecution) -> None:
    execution.close()
    assert ends(execution, "Error") == "Error"
    with transaction.atomic():
        assert execution.retry_failed() == 1
        with pytest.raises(NotCommitted):
            execution.wait(timeout=0)


CHANGES: dict[str, Callable[[TrackedExecution], object]] = {
    "nothing": lambda one: None,
    "more jobs": lambda one: one.add([scan.s()]),
    "its end": lambda one: one.close(),
    "a child": lambda one: start("SCAN", jobs=[scan.s()], parent=one),
}


@pytest.mark.parametrize("change", CHANGES)
def test_jobs_are_waited_for_outside_a_transaction_alone_whatever_it_changes(change: str) -> None:
    """The transaction may have added jobs to a descendant, or its locks may hold the jobs up."""
    execution = start("SCAN", jobs=[scan.s()], open=True)
    with transaction.atomic():
        CHANGES[change](execution)
        with pytest.raises(NotCommitted):
            execution.wait(timeout=0)
    fails_and_is_tried_again(start("SCAN", jobs=[scan.s()], open=True))
    execution.stop()
    with transaction.atomic():
        assert execution.wait(timeout=0) == "Stopped"
        assert start("SCAN", jobs=[]).wait() == "Success", "it has no jobs, so it has ended before the commit"
