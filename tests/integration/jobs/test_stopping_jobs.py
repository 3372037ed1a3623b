"""stop_jobs, delete: the database decides, and jobs that run are asked after the commit, and only then."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import transaction

from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.lifecycle import job_stops
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_jobs
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Run
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from tests.integration.jobs.sample_jobs import Outbox, known, record, recorded, state, write
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "nodes")

STOP: list[Callable[[int], int]] = [stop_jobs, lambda pk: delete([pk])]


class ViewFailed(Exception):
    pass


@pytest.mark.parametrize("stop", STOP, ids=["stop", "delete"])
def test_in_a_transaction_that_rolls_back_nothing_is_stopped(
    stop: Callable[[int], int], redis: Redis, outbox: Outbox
) -> None:
    execution = recorded("runs", "waits")
    records = [record("runs", node="live"), record("waits", "Scheduled", 1, sent=False)]
    write(redis, *records)
    before = known(redis)
    with suppress(ViewFailed), transaction.atomic():
        stop(execution.pk)
        raise ViewFailed
    assert known(redis) == before


@pytest.mark.parametrize("stop", STOP, ids=["stop", "delete"])
def test_jobs_are_asked_when_the_outermost_transaction_commits(
    stop: Callable[[int], int], redis: Redis, outbox: Outbox
) -> None:
    execution = recorded("runs")
    runs = record("runs", node="live")
    write(redis, runs)
    with transaction.atomic():
        stop(execution.pk)
        assert known(redis)["records"] == {"runs": runs}
    assert known(redis)["records"]["runs"].asked


def test_what_waits_is_forgotten_and_what_runs_is_asked_and_counted(redis: Redis, outbox: Outbox) -> None:
    execution = recorded("runs", "waits", "was never heard of")
    write(redis, record("runs", node="live"), record("waits", "Scheduled", 1, sent=False))
    assert stop_jobs(execution.pk) == 1
    stopped = dict.fromkeys(["runs", "waits", "was never heard of"], ("Stopped", 0, 0, ""))
    assert known(redis) == state(stopped, [record("runs", node="live", asked=True)])


def test_a_stop_that_redis_never_heard_of_is_told_by_recovery(
    redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died after the commit, say."""
    execution = recorded("runs", "waits")
    write(redis, record("runs", node="live"), record("waits", "Scheduled", 1, ago=60, sent=False))
    monkeypatch.setattr(job_stops, "ask_to_stop", lambda jobs: 0)
    stop_jobs(execution.pk)
    assert recover_jobs(outbox.publish) == Recovered()
    assert known(redis)["records"] == {"runs": record("runs", node="live", asked=True)}
    assert job_records().check_in(Run("runs", Task.objects.get(job_id="runs").pk, "live", 0, 1)) is True
