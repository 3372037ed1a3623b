"""The runs of this process, which it tells a Redis that was emptied of."""

from collections.abc import Iterator

import pytest

from executions.queue import Run
from tasks.jobs import underway
from tests.integration.jobs.situations import DAY, NOW, SECOND, known, record, recorded, state, write
from tests.integration.state import Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "clock", "outbox")

PENDING = ("Pending", 0, 0, "")


@pytest.fixture(autouse=True)
def nothing_under_way() -> Iterator[None]:
    underway._runs.clear()
    yield
    underway._runs.clear()


def run(job: str, pk: int, *, ago: int = 60) -> Run:
    return Run(job, pk, "me", revision=2, runs=3, begun=NOW - ago * SECOND)


def test_an_emptied_redis_is_told_of_what_runs_and_not_of_what_has_ended(redis: Redis, clock: Clock) -> None:
    execution = recorded("a", "b", "has ended")
    a, b, ended = (run(task.job_id, task.pk) for task in execution.tasks.order_by("pk"))
    for one in (a, b, ended):
        underway.begin(one)
    underway.end(ended)
    underway.end(run("was never begun here", 99))
    redis.flushall()
    clock.set(NOW)

    underway.tell_again()
    tasks = {"a": PENDING, "b": PENDING, "has ended": PENDING}
    expected = state(
        tasks, [record("a", revision=2, node="me", runs=3), record("b", revision=2, node="me", runs=3)]
    )
    assert known(redis) == expected
    underway.tell_again()
    assert known(redis) == expected


def test_a_run_that_was_given_to_another_meanwhile_is_left_to_it(redis: Redis) -> None:
    execution = recorded("other revision", "other node", "waits again", "over")
    for task in execution.tasks.all():
        underway.begin(run(task.job_id, task.pk))
    others = [
        record("other revision", revision=3, node="me", ago=5),
        record("other node", revision=2, node="you", ago=5),
        record("waits again", "Pending", 3, ago=5, sent=False),
        record("over", "Error", 2, node="me", ago=5),
    ]
    write(redis, *others)
    underway.tell_again()
    assert known(redis)["records"] == {one.job: one for one in others}


def test_a_run_that_redis_should_know_of_and_does_not_is_over(redis: Redis) -> None:
    """It remembers for longer than this runs."""
    underway.begin(run("j", recorded("j").tasks.get().pk, ago=DAY - 1))
    underway.tell_again()
    assert known(redis)["records"] == {}


def test_who_runs_the_same_job_again_has_the_later_run_under_way(redis: Redis, clock: Clock) -> None:
    pk = recorded("j").tasks.get().pk
    underway.begin(run("j", pk))
    again = Run("j", pk, "me", 3, 4, NOW)
    underway.begin(again)
    redis.flushall()
    clock.set(NOW + 1)
    underway.tell_again()
    (found,) = known(redis)["records"].values()
    assert (found.revision, found.runs) == (3, 4)
