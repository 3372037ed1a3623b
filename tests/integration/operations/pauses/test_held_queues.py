"""The queues that a worker holds, with a consumer that does at once what it is asked to do."""

from typing import Any

import pytest
from celery.app.amqp import Queues
from kombu import Queue

from harbor_refresh.executions.access.audit import Origin, Person
from harbor_refresh.tasks.broker.celery_queues import CYCLES, DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.operations import held_queues
from harbor_refresh.tasks.operations.held_queues import HeldQueues
from harbor_refresh.tasks.operations.pauses import pause, resume

pytestmark = pytest.mark.usefixtures("database", "redis")

ALICE = Person("alice", Origin.TERMINAL)
OURS = [TICKS, WORK, JOBS, DELIVERIES]


class TaskConsumer:
    def __init__(self, names: list[str]) -> None:
        self.names = set(names)

    def cancel_by_queue(self, name: str) -> None:
        self.names.discard(name)

    def consuming_from(self, name: str) -> bool:
        return name in self.names

    def add_queue(self, queue: Queue) -> None:
        self.names.add(queue.name)

    def consume(self) -> None:
        pass


class Consumer:
    connection_errors = (ConnectionError,)
    channel_errors = ()

    def __init__(self, names: list[str]) -> None:
        self.task_consumer: TaskConsumer | None = TaskConsumer(names)

    def call_soon(self, act: Any, *words: Any) -> None:
        act(*words)


def queues(*names: str) -> Queues:
    found = Queues([Queue(name) for name in OURS])
    if names:
        found.select(list(names))
    return found


def selected(found: Queues) -> set[str]:
    return set(found.consume_from)


def away(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("the database is away")

    monkeypatch.setattr(held_queues, "paused", fail)


def test_a_worker_holds_what_is_paused_and_takes_the_rest() -> None:
    pause(JOBS, ALICE)
    found = queues()
    HeldQueues(found).begin()
    assert selected(found) == {TICKS, WORK, DELIVERIES}


@pytest.mark.parametrize("chosen", [[], ["examples"], [JOBS]], ids=str)
def test_a_worker_without_a_database_takes_nothing_that_may_be_paused_until_it_can_read(
    chosen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = queues(*chosen)
    before = selected(found)
    held, consumer = HeldQueues(found), Consumer([])
    with monkeypatch.context() as patched:
        away(patched)
        held.begin()
        assert selected(found) == before & {TICKS, WORK}
        held.follow(consumer)
        assert selected(found) == before & {TICKS, WORK}
    held.follow(consumer)
    assert selected(found) == before


def test_a_pause_and_a_resume_reach_a_worker_that_runs() -> None:
    found, consumer = queues(), Consumer(OURS)
    held = HeldQueues(found)
    held.begin()
    assert consumer.task_consumer
    for _ in range(2):
        pause(JOBS, ALICE)
        for _ in range(2):
            held.follow(consumer)
            assert selected(found) == consumer.task_consumer.names == {TICKS, WORK, DELIVERIES}
        resume(JOBS, ALICE)
        for _ in range(2):
            held.follow(consumer)
            assert selected(found) == consumer.task_consumer.names == set(OURS)


def test_nothing_changes_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    pause(JOBS, ALICE)
    found, consumer = queues(), Consumer(OURS)
    held = HeldQueues(found)
    held.begin()
    resume(JOBS, ALICE)
    away(monkeypatch)
    held.follow(consumer)
    assert selected(found) == {TICKS, WORK, DELIVERIES}


def test_while_the_consumer_reconnects_only_the_selection_changes() -> None:
    found, consumer = queues(), Consumer([])
    held = HeldQueues(found)
    held.begin()
    consumer.task_consumer = None
    pause(JOBS, ALICE)
    held.follow(consumer)
    assert selected(found) == {TICKS, WORK, DELIVERIES}
    resume(JOBS, ALICE)
    held.follow(consumer)
    assert selected(found) == set(OURS)


def test_a_queue_that_a_person_cancelled_with_celery_stays_cancelled() -> None:
    found, consumer = queues(), Consumer(OURS)
    held = HeldQueues(found)
    held.begin()
    found.deselect(DELIVERIES)
    pause(JOBS, ALICE)
    held.follow(consumer)
    resume(JOBS, ALICE)
    held.follow(consumer)
    assert selected(found) == {TICKS, WORK, JOBS}


def test_refreshing_ticks_and_cycles_are_never_held() -> None:
    pause(WORK, ALICE)
    found = queues()
    found.select_add(CYCLES)
    HeldQueues(found).begin()
    assert selected(found) == {*OURS, CYCLES.name}
