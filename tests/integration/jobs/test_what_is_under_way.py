"""The runs that this process has under way: their leases are renewed, and what Redis forgot is told again."""

from collections.abc import Iterator

import pytest

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.records.run import Run
from harbor_refresh.tasks.jobs.runtime import current_runs
from tests.integration.jobs.sample_jobs import NOW, SECOND, database_port, known, record, recorded, stands, write
from tests.integration.redis_state import Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "clock", "outbox")


@pytest.fixture(autouse=True)
def no_current_runs() -> Iterator[None]:
    end_all()
    yield
    end_all()


def end_all() -> None:
    for run in current_runs.current():
        current_runs.end(run)


def run(job: str, revision: int = 2) -> Run:
    return Run(job, Task.objects.get(job_id=job).pk, "me", revision, runs=3)


def test_leases_are_renewed_of_what_runs_and_not_of_what_has_ended(redis: Redis, clock: Clock) -> None:
    recorded("runs", "has ended")
    records = [record(job, revision=2, node="me", runs=3) for job in ("runs", "has ended")]
    write(redis, *records)
    for job in ("runs", "has ended"):
        current_runs.begin(run(job))
    current_runs.end(run("has ended"))
    clock.move(5)
    current_runs.record_anew(current_runs.renew())
    found = known(redis)["records"]
    assert {job: one.renewed for job, one in found.items()} == {"runs": NOW + 5 * SECOND, "has ended": NOW}
    assert not current_runs.is_lost(run("runs"))


@pytest.mark.parametrize(("status", "revision"), [("Pending", 0), ("Pending", 2), ("Running", 1), ("Running", 2)])
def test_a_run_that_redis_has_forgotten_and_the_database_has_not_is_recorded_anew(
    status: str, revision: int, redis: Redis
) -> None:
    recorded("j")
    stands("j", status, revision)
    current_runs.begin(run("j"))
    current_runs.record_anew(current_runs.renew())
    assert known(redis)["records"] == {"j": record("j", revision=2, node="me", runs=3)}
    assert not current_runs.is_lost(run("j"))


@pytest.mark.parametrize(("status", "revision"), [("Success", 2), ("Stopped", 1), ("Pending", 3), ("Running", 3)])
def test_a_run_that_both_have_given_up_is_lost_and_not_recorded(status: str, revision: int, redis: Redis) -> None:
    recorded("j")
    stands("j", status, revision)
    current_runs.begin(run("j"))
    current_runs.record_anew(current_runs.renew())
    assert known(redis)["records"] == {}
    assert current_runs.is_lost(run("j"))
    current_runs.end(run("j"))
    assert not current_runs.is_lost(run("j"))


def test_a_run_whose_task_was_deleted_is_lost(redis: Redis) -> None:
    execution = recorded("j")
    one = run("j")
    current_runs.begin(one)
    execution.delete()
    current_runs.record_anew(current_runs.renew())
    assert current_runs.is_lost(one)
    assert known(redis)["records"] == {}


def test_a_run_that_was_given_to_another_meanwhile_is_lost_and_its_job_left_to_that(redis: Redis) -> None:
    recorded("other revision", "other node", "waits again", "over")
    others = [
        record("other revision", revision=3, node="me", ago=5),
        record("other node", revision=2, node="you", ago=5),
        record("waits again", "Pending", 3, ago=5, sent=False),
        record("over", "Error", 2, node="me", ago=5),
    ]
    write(redis, *others)
    for one in others:
        current_runs.begin(run(one.job))
    current_runs.record_anew(current_runs.renew())
    assert known(redis)["records"] == {one.job: one for one in others}
    assert all(current_runs.is_lost(run(one.job)) for one in others)


def test_a_database_that_is_away_is_asked_with_the_next_beat(redis: Redis) -> None:
    recorded("j")
    one = run("j")
    current_runs.begin(one)
    with database_port() as port:
        port.away()
        current_runs.record_anew(current_runs.renew())
    assert known(redis)["records"] == {}
    assert not current_runs.is_lost(one)
    current_runs.record_anew(current_runs.renew())
    assert known(redis)["records"] == {"j": record("j", revision=2, node="me", runs=3)}


def test_of_two_runs_of_a_job_the_later_one_is_under_way(redis: Redis, clock: Clock) -> None:
    recorded("j")
    current_runs.begin(run("j"))
    current_runs.begin(run("j", 3))
    current_runs.end(run("j"))
    current_runs.record_anew(current_runs.renew())
    (found,) = known(redis)["records"].values()
    assert (found.revision, found.runs) == (3, 3)
