"""The crowd and the demo over a real database: when it goes away, and how they stay bounded."""

import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError, connection

from examples.simulation import crowd as crowds
from examples.simulation.crowd import Crowd, Made, make
from examples.simulation.demo import MARK, Demo
from examples.simulation.drain import NotDrained, describe, drain
from examples.simulation.oracle import outcomes
from examples.simulation.plan import Mix, Plan, plan
from examples.simulation.verdict import surprises
from executions.errors import DatabaseAway
from executions.models import Execution, Task
from executions.queue import ExecutionQueue
from executions.usecases import NewExecution, NewTask, create, refresh, report, stop

pytestmark = pytest.mark.usefixtures("database", "redis")

MIX = Mix(executions=30, stops=0.2, errors=0.2, retries=0.2, duplicates=0.2, late=0.2)


def carried_out(todo: Plan) -> Made:
    made = make(todo)
    Crowd(todo, made, rate=0, patience=5).run()
    return made


def test_what_the_crowd_reported_is_what_the_plan_predicts() -> None:
    todo = plan(MIX)
    made = carried_out(todo)
    refresh(made.executions)
    assert surprises(todo, made) == []
    stored = Execution.objects.in_bulk(made.executions)
    assert [stored[pk].status for pk in made.executions] == outcomes(todo)
    assert {stored[pk].vendor_type for pk in made.executions} <= set(MIX.vendors)


def test_an_execution_that_somebody_else_changed_is_a_surprise() -> None:
    todo = plan(Mix(executions=3, errors=0, retries=0, stops=0))
    made = make(todo)
    stop(made.executions[1])
    Crowd(todo, made, rate=0, patience=5).run()
    refresh(made.executions)
    assert surprises(todo, made) == [f"execution {made.executions[1]} is Stopped, and the plan predicts Success"]


def test_every_move_is_counted_once() -> None:
    todo = plan(MIX)
    made = make(todo)
    seen: list[int] = []
    tally = Crowd(todo, made, rate=0, patience=5).run(seen.append)
    assert tally.sent == len(todo)
    assert tally.applied + tally.unchanged + tally.stops == len(todo)
    assert tally.refused == 0
    assert seen == sorted(seen)


def fails_at_first(times: int, act: Callable[..., object]) -> Callable[..., object]:
    """`act`, whose first calls find no database."""
    lock, left = threading.Lock(), [times]

    def acts(*words: object) -> object:
        with lock:
            left[0] -= 1
            if left[0] >= 0:
                raise OperationalError("the connection was closed")
        return act(*words)

    return acts


def test_a_database_that_goes_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(crowds, "report", fails_at_first(20, report))
    todo = plan(MIX)
    made = carried_out(todo)
    refresh(made.executions)
    assert surprises(todo, made) == []


def test_a_database_that_stays_away_ends_the_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "AGAIN_SECONDS", 0.01)
    todo = plan(MIX)
    made = make(todo)
    monkeypatch.setattr(crowds, "report", fails_at_first(10**9, report))
    with pytest.raises(DatabaseAway):
        Crowd(todo, made, rate=0, patience=0.1).run()


def test_a_queue_that_nobody_works_does_not_drain(queue: ExecutionQueue) -> None:
    queue.add(["1:SLACK", "2:SLACK"])
    looks: list[str] = []
    with pytest.raises(NotDrained, match="no worker gives a sign of life"):
        drain(0.3, lambda stats: looks.append(describe(stats)))
    assert looks[0].startswith("2 in the queue, 0 in processing")


def test_an_empty_queue_has_drained(queue: ExecutionQueue) -> None:
    drain(0)


class Enough(Exception):
    """The demo may end."""


class Clock:
    """A time that passes when somebody sleeps, and ends the demo when there is enough."""

    def __init__(self, enough: Callable[[], bool]) -> None:
        self.time, self._enough = 0.0, enough

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        if self._enough():
            raise Enough
        assert self.time < 1000, "the demo does not get there"


def work_until(enough: Callable[[], bool], keep: int = 500) -> list[str]:
    """Run the demo until there is enough, on a clock of its own; returns what it told."""
    told: list[str] = []
    clock = Clock(enough)
    with pytest.raises(Enough):
        Demo(1, keep=keep, tell=told.append, now=clock.now, sleep=clock.sleep).run()
    return told


def refresh_all() -> None:
    refresh(list(Execution.objects.unfinished().values_list("pk", flat=True)))


def test_the_demo_brings_its_executions_to_an_end() -> None:
    def enough() -> bool:
        refresh_all()
        return Execution.objects.filter(end_time__isnull=False).count() >= 10

    assert work_until(enough) == []
    assert Execution.objects.filter(extra_attrs=MARK).count() == Execution.objects.count()


def test_the_demo_keeps_itself_bounded_and_touches_nobody_elses() -> None:
    other = create(NewExecution("SLACK", tasks=[NewTask()]))
    stop(other.pk)

    def enough() -> bool:
        refresh_all()
        return Execution.objects.latest("pk").pk >= other.pk + 60

    work_until(enough, keep=20)
    finished = Execution.objects.filter(extra_attrs=MARK, end_time__isnull=False)
    assert finished.count() <= 20
    assert Execution.objects.filter(pk=other.pk).exists()


def test_the_demo_takes_up_what_an_earlier_one_left() -> None:
    left = create(NewExecution("SLACK", extra_attrs=MARK, tasks=[NewTask(), NewTask()]))
    ended = Task.objects.filter(execution=left, status="Success")
    work_until(lambda: ended.count() == 2)


def test_the_demo_waits_for_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.simulation.demo.create", fails_at_first(3, create))
    told = work_until(lambda: Execution.objects.count() > 0)
    assert [line.split(":")[0] for line in told] == ["PostgreSQL", "The database is back."]
    assert connection.is_usable()
