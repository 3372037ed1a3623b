"""The runners and the demo over a real database: when it goes down, and that the demo stays bounded."""

import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError

from examples.simulation import runners
from examples.simulation.demo import LABEL, Demo
from examples.simulation.plan import Mix, Plan, plan
from examples.simulation.prediction import outcomes
from examples.simulation.queue_state import NotDrained, describe, wait_until_drained
from examples.simulation.runners import Created, Runners, create_executions
from examples.simulation.verdict import surprises
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.queue.queue import ExecutionQueue

pytestmark = pytest.mark.usefixtures("database", "redis")

MIX = Mix(executions=30, stops=0.2, errors=0.2, retries=0.2, duplicates=0.2, late=0.2)


def carried_out(todo: Plan) -> Created:
    created = create_executions(todo)
    Runners(todo, created, rate=0, patience=300).run()
    return created


def test_the_reports_of_the_runners_give_what_the_plan_predicts() -> None:
    todo = plan(MIX)
    created = carried_out(todo)
    refresh(created.executions)
    assert surprises(todo, created) == []
    stored = Execution.objects.in_bulk(created.executions)
    assert [stored[pk].status for pk in created.executions] == outcomes(todo)
    assert {stored[pk].vendor_type for pk in created.executions} <= set(MIX.vendors)


def test_an_execution_that_was_changed_from_outside_is_reported_as_unexpected() -> None:
    todo = plan(Mix(executions=3, errors=0, retries=0, stops=0))
    created = create_executions(todo)
    stop(created.executions[1])
    Runners(todo, created, rate=0, patience=300).run()
    refresh(created.executions)
    assert surprises(todo, created) == [
        f"execution {created.executions[1]} is Stopped, and the plan predicts Success"
    ]


def fails_at_first(times: int, act: Callable[..., object]) -> Callable[..., object]:
    """Wrap `act` so that its first calls find no database."""
    lock, left = threading.Lock(), [times]

    def acts(*words: object) -> object:
        with lock:
            left[0] -= 1
            if left[0] >= 0:
                raise OperationalError("the connection was closed")
        return act(*words)

    return acts


def test_a_database_that_goes_down_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(runners, "report", fails_at_first(20, report))
    todo = plan(MIX)
    created = carried_out(todo)
    refresh(created.executions)
    assert surprises(todo, created) == []


def test_a_database_that_stays_down_ends_the_runners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "RETRY_SECONDS", 0.01)
    todo = plan(MIX)
    created = create_executions(todo)
    monkeypatch.setattr(runners, "report", fails_at_first(10**9, report))
    with pytest.raises(DatabaseDown):
        Runners(todo, created, rate=0, patience=0.1).run()


def test_a_queue_without_workers_does_not_drain(queue: ExecutionQueue) -> None:
    queue.mark(["1:SLACK", "2:SLACK"])
    looks: list[str] = []
    with pytest.raises(NotDrained, match="no worker sends heartbeats"):
        wait_until_drained(0.3, lambda stats: looks.append(describe(stats)))
    assert looks[0].startswith("2 in the queue, 0 in processing")


class Enough(Exception):
    """The demo may end."""


class Clock:
    """A clock that only `sleep` moves; it ends the demo when `enough` is true."""

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
    """Run the demo on a clock of its own until `enough` is true; return what it told."""
    told: list[str] = []
    clock = Clock(enough)
    with pytest.raises(Enough):
        Demo(1, keep=keep, tell=told.append, now=clock.now, sleep=clock.sleep).run()
    return told


def refresh_all() -> None:
    refresh(list(Execution.objects.filter(end_time__isnull=True).values_list("pk", flat=True)))


def test_the_demo_ends_its_executions() -> None:
    def enough() -> bool:
        refresh_all()
        return Execution.objects.filter(end_time__isnull=False).count() >= 10

    assert work_until(enough) == []
    assert Execution.objects.filter(extra_attrs=LABEL).count() == Execution.objects.count()


def test_the_demo_keeps_a_bounded_number_and_deletes_only_its_own() -> None:
    other = create(NewExecution("SLACK", tasks=[NewTask()]))
    stop(other.pk)

    def enough() -> bool:
        refresh_all()
        return Execution.objects.latest("pk").pk >= other.pk + 60

    work_until(enough, keep=20)
    finished = Execution.objects.filter(extra_attrs=LABEL, end_time__isnull=False)
    assert finished.count() <= 20
    assert Execution.objects.filter(pk=other.pk).exists()


def test_the_demo_finishes_what_an_earlier_one_left() -> None:
    left = create(NewExecution("SLACK", extra_attrs=LABEL, tasks=[NewTask(), NewTask()]))
    ended = Task.objects.filter(execution=left, status="Success")
    work_until(lambda: ended.count() == 2)
    assert set(Task.objects.filter(execution=left).values_list("status", flat=True)) == {"Success"}
