"""Jobs of a real worker, as tasks of an execution."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from celery import chain
from django.utils import timezone

from harbor_refresh.celery import app
from harbor_refresh.executions.errors import AlreadyUnderWay
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.broker.celery_queues import JOBS
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.jobs.messages.validation import header_of
from harbor_refresh.tasks.models import Job
from tests.faults import jobs as team
from tests.faults.cluster import Member
from tests.faults.conftest import ends, status
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def all_is_well(holds: Callable[..., None], worker: object, log: Path) -> Iterator[None]:
    """After each test K1 to K5, and no job is left in progress."""
    yield
    holds()


def statuses(execution: Execution) -> dict[str, int]:
    return dict(Counter(execution.tasks.values_list("status", flat=True)))


def test_an_execution_of_jobs_ends_when_they_have(worker: Callable[..., Member], log: Path) -> None:
    member = worker()
    execution = start("REPLICATION", vendor_id=7, jobs=[team.copy.s(str(n)) for n in range(20)])
    ends(execution, "Success", member)
    assert statuses(execution) == {"Success": 20}
    assert Counter(log.read_text().splitlines()) == Counter(f"copy {n}" for n in range(20))
    assert (execution.vendor_type, execution.vendor_id) == ("REPLICATION", 7)


def test_stop_ends_what_runs_and_what_waits(worker: Callable[..., Member], log: Path) -> None:
    member = worker(concurrency=1)
    execution = start("SCAN", jobs=[team.endless.s(str(n)) for n in range(5)])
    wait_for(log.read_text, "the first to run", log=member.log)
    assert execution.stop() == 1
    assert status(execution) == "Stopped"
    assert statuses(execution) == {"Stopped": 5}
    other = start("SCAN", jobs=[team.copy.s("after")])
    ends(other, "Success", member)
    assert log.read_text().splitlines() == ["endless 0", "copy after"]


def test_a_unique_job_is_not_started_while_its_like_is_queued_or_running_and_is_afterwards(
    worker: Callable[..., Member], log: Path
) -> None:
    first = start("SCAN", jobs=[team.only_one.s("a"), team.only_one.s("a"), team.only_one.s("b")])
    assert first.tasks.count() == 2
    with pytest.raises(AlreadyUnderWay):
        start("SCAN", jobs=[team.only_one.s("a")])
    assert Execution.objects.count() == 1
    member = worker()
    ends(first, "Success", member)
    again = start("SCAN", jobs=[team.only_one.s("a")])
    ends(again, "Success", member)


def test_a_worker_that_is_killed_gives_its_jobs_to_another(worker: Callable[..., Member], log: Path) -> None:
    first = worker("first", concurrency=2)
    execution = start("SCAN", jobs=[team.copy.s(str(n), 1.5) for n in range(4)])
    wait_for(lambda: len(log.read_text().splitlines()) >= 2, "two to run", log=first.log)
    first.kill()
    second = worker("second", concurrency=2)
    ends(execution, "Success", second)
    runs = Counter(log.read_text().splitlines())
    assert runs.keys() == {f"copy {n}" for n in range(4)}
    assert sum(runs.values()) <= 6
    assert execution.progress().share == 1.0


def test_a_job_gets_the_values_that_it_was_given_and_hands_such_values_on(
    worker: Callable[..., Member], log: Path
) -> None:
    member = worker()
    values = [UUID(int=7), date(2026, 11, 23), Decimal("1.20"), b"bytes"]
    execution = start("SCAN", jobs=chain(team.typed.s(values), team.typed.s()))
    ends(execution, "Success", member)
    got = f"typed UUID={UUID(int=7)} date=2026-11-23 Decimal=1.20 bytes=b'bytes'"
    assert log.read_text().splitlines() == [got, got]


def test_a_worker_leaves_the_message_of_another_database_alone(worker: Callable[..., Member], log: Path) -> None:
    """In that database another job has the task of this id. One message is to be run; the other has expired."""
    member = worker()
    ours = start("SCAN", jobs=[team.copy.s("later").set(countdown=3600)])
    Job.objects.update(state="sent", sent_at=timezone.now())
    foreign, expired = str(uuid4()), str(uuid4())
    for job, options in ((foreign, {}), (expired, {"expires": 0.01})):
        headers = header_of(ours.tasks.get().pk, 0)
        app.send_task("tests.copy", ["foreign"], task_id=job, queue=JOBS, headers=headers, **options)
    wait_for(lambda: f"[{foreign}] ignored" in member.text(), "the message to be ignored", log=member.log)
    wait_for(lambda: f"[{expired}] received" in member.text(), "the other message", log=member.log)
    ends(start("SCAN", jobs=[team.copy.s("ours")]), "Success", member)
    assert log.read_text().splitlines() == ["copy ours"]
    assert list(ours.tasks.values_list("status", "run_count")) == [("Scheduled", 0)]
    ours.stop()
