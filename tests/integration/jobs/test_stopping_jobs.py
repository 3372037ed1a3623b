"""stop_jobs, delete: the end of a task ends its job, with the commit and not before."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import transaction

from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.stops import stop_job_of, stop_jobs
from harbor_refresh.tasks.jobs.turns import Begun, Turn, take
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, chained, recorded, rows, tasks

pytestmark = pytest.mark.usefixtures("database")

STOP: list[Callable[[int], int]] = [stop_jobs, lambda pk: delete([pk])]


class ViewFailed(Exception):
    pass


@pytest.fixture
def runs(outbox: Outbox) -> Begun:
    """The job `runs` does so; `waits` and `for later` wait for their turn."""
    beats()
    recorded("runs", "waits")
    found = {message.job: message for message in outbox.take()}
    run = begun(found["runs"])
    assert run
    return run


@pytest.mark.parametrize("stop", STOP, ids=["stop", "delete"])
def test_in_a_transaction_that_rolls_back_nothing_is_stopped(stop: Callable[[int], int], runs: Begun) -> None:
    with suppress(ViewFailed), transaction.atomic():
        stop(Task.objects.earliest("pk").execution_id)
        raise ViewFailed
    assert rows() == {"runs": ("running", 1), "waits": ("sent", 0)}


def test_a_stop_ends_what_waits_and_what_runs_and_counts_what_runs(runs: Begun) -> None:
    assert stop_jobs(Task.objects.earliest("pk").execution_id) == 1
    assert rows() == {"runs": ("ended", 1), "waits": ("ended", 0)}
    assert tasks() == dict.fromkeys(["runs", "waits"], ("Stopped", 0, 0, ""))


@pytest.mark.parametrize("status", [Status.RUNNING, Status.SUCCESS, Status.ERROR, Status.SCHEDULED])
def test_no_turn_of_a_run_that_was_stopped_changes_anything(status: Status, runs: Begun) -> None:
    stop_jobs(Task.objects.earliest("pk").execution_id)
    assert take([Turn(runs.run, status, "too late")]) == []
    assert tasks()["runs"] == ("Stopped", 0, 0, "")
    assert rows()["runs"] == ("ended", 1)


def test_a_job_that_is_stopped_alone_stops_those_behind_it_in_its_chain(outbox: Outbox) -> None:
    execution = chained("a", "b", "c")
    assert stop_job_of(execution.tasks.get(job_id="b").pk)
    assert {name: state for name, (state, _) in rows().items()} == {"a": "sent", "b": "ended", "c": "ended"}
    assert tasks()["c"][0] == "Stopped"
    assert not stop_job_of(execution.tasks.get(job_id="b").pk)
