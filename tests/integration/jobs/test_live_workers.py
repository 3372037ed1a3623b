"""Nodes: which workers are dead, and what becomes of the jobs that they ran. A silent job fails after
a day; what it does for reports is in test_the_report_target.py."""

import itertools
import logging
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from billiard import Process
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import live_workers, terms
from harbor_refresh.tasks.jobs.live_workers import delete_dead_workers, release_runs_without_worker
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.running.reaper import Reaped, reap
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.models.terms import Failure
from tests.integration.concurrency import transaction_held_open
from tests.integration.jobs.sample_jobs import (
    NODE,
    Outbox,
    beats,
    begun,
    chained,
    its_process_looked,
    recorded,
    rows,
    silent,
    tasks,
    tasks_refuse,
    worker_of_jobs,
)
from tests.started import start
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database")

TTL = live_workers.TTL_SECONDS
SILENCE = "nothing was heard of it for 24 hours"


def suspected_for(node: int, seconds: float) -> None:
    """This node is suspected, by a look that was so long ago, and has been silent before and since."""
    silent(node, seconds + TTL)
    Node.objects.filter(pk=node).update(suspected_at=Node.objects.get(pk=node).heard_at)
    silent(node, seconds + 2 * TTL)


@pytest.fixture
def running(outbox: Outbox) -> Any:
    """The job j runs on node 1; node 2 is alive."""
    beats(1, name="one")
    beats(2, name="two")
    recorded("j", max_attempts=2)
    (message,) = outbox.take()
    found = begun(message)
    assert found
    return found


def test_a_node_is_dead_when_it_was_silent_for_two_looks(running: Any) -> None:
    silent(1, TTL + 1)
    assert delete_dead_workers() == [], "it is suspected by now"
    assert delete_dead_workers() == [], "it has had no time to beat since"
    suspected_for(1, TTL + 1)
    assert delete_dead_workers() == ["one"]
    assert list(Node.objects.values_list("name", flat=True)) == ["two"]


def test_a_beat_between_two_looks_clears_the_suspicion(running: Any) -> None:
    silent(1, TTL + 1)
    delete_dead_workers()
    beats(1, name="one")
    assert Node.objects.get(pk=1).suspected_at is None
    assert delete_dead_workers() == []


@pytest.mark.parametrize("is_suspected", [False, True])
def test_a_sign_of_life_in_the_future_comes_from_a_clock_that_went_back_and_hides_no_dead_node(
    is_suspected: bool, running: Any
) -> None:
    ahead = Now() + timedelta(hours=1)
    node = Node.objects.filter(pk=1)
    node.update(heard_at=ahead, suspected_at=ahead if is_suspected else None)
    assert run("to_do", node=2, queues=[], ttl=TTL)[0][1], "some node is silent"
    assert delete_dead_workers() == [], "it is suspected from now on, and may beat"
    assert node.filter(suspected_at__lte=Now()).update(suspected_at=Now() - timedelta(seconds=TTL + 1)) == 1
    assert delete_dead_workers() == ["one"]


def test_the_runs_of_a_dead_node_are_released_and_the_jobs_are_sent_again(running: Any, outbox: Outbox) -> None:
    Node.objects.filter(pk=1).delete()
    assert release_runs_without_worker() == 1
    assert rows() == {"j": ("sent", 1)}
    assert outbox.taken() == [("j", 1)]
    assert tasks()["j"] == ("Pending", 1, 1, "its process died")


@pytest.mark.parametrize("node", [1, 2], ids=["the same process", "another node"])
def test_the_end_of_a_run_that_was_released_comes_too_late(node: int, running: Any, outbox: Outbox) -> None:
    Node.objects.filter(pk=1).delete()
    release_runs_without_worker()
    assert take([Outcome(running.run, Status.SUCCESS)]) == []
    (message,) = outbox.take()
    beats(node)
    assert begun(message, node=node)
    assert take([Outcome(running.run, Status.SUCCESS)]) == [], "the next run is still running"
    assert release_runs_without_worker() == 0, "the node of the next run is alive"
    assert rows() == {"j": ("running", 2)}


def ran_on_a_dead_node(outbox: Outbox) -> None:
    beats()
    for message in outbox.take():
        assert begun(message)
    Node.objects.all().delete()


@pytest.fixture
def three_dead(outbox: Outbox) -> None:
    """The jobs a, b and c ran on a node that is dead."""
    recorded("a", "b", "c", max_attempts=2)
    ran_on_a_dead_node(outbox)


def test_a_run_whose_task_is_locked_holds_up_no_other(three_dead: None) -> None:
    with transaction_held_open(lambda: Task.objects.select_for_update().get(job_id="a")) as commit:
        assert release_runs_without_worker() == 2
        assert {name: state for name, (state, _) in rows().items()} == {"a": "running", "b": "sent", "c": "sent"}
        commit()
    assert release_runs_without_worker() == 1


def test_runs_whose_release_the_database_refuses_hold_up_no_other(three_dead: None) -> None:
    tasks_refuse("OLD.job_id IN ('a', 'b')")
    assert release_runs_without_worker() == 1
    assert {name: state for name, (state, _) in rows().items()} == {"a": "running", "b": "running", "c": "sent"}


def test_a_run_with_a_locked_job_behind_it_holds_up_no_other(outbox: Outbox) -> None:
    """It has begun as often as it may, so its end would end the job behind it."""
    chained("a", "b")
    recorded("c")
    Job.objects.update(max_attempts=1)
    ran_on_a_dead_node(outbox)
    with transaction_held_open(lambda: Task.objects.select_for_update().get(job_id="b")) as commit:
        assert release_runs_without_worker() == 1
        assert rows()["c"] == ("ended", 1)
        commit()
    assert release_runs_without_worker() == 1
    assert (tasks()["a"][0], tasks()["b"][0]) == ("Error", "Stopped")


def test_the_job_behind_one_that_was_exhausted_is_sent_with_its_release(outbox: Outbox) -> None:
    needs = [NewNeed(0, even_if_failed=True)]
    start("SCAN", [[NewJob("a.job", job_id="a", max_attempts=1), NewJob("b.job", job_id="b", needs=needs)]])
    ran_on_a_dead_node(outbox)
    assert release_runs_without_worker() == 1
    assert tasks()["a"][0] == "Error"
    assert outbox.taken() == [("b", 0)]


def test_a_run_in_eager_mode_has_no_node_and_stays(outbox: Outbox) -> None:
    recorded("j")
    (message,) = outbox.take()
    assert begun(message, node=0)
    assert release_runs_without_worker() == 0


# silent jobs


@pytest.fixture
def three(outbox: Outbox) -> None:
    """Three jobs run. Their worker is alive."""
    beats()
    recorded("a", "b", "c")
    for message in outbox.take():
        assert begun(message)


def heard(job: str, hours_ago: float) -> None:
    then = Now() - timedelta(hours=hours_ago)
    assert Job.objects.filter(task__job_id=job).update(heard_at=then) == 1


def test_a_job_that_was_silent_for_a_day_fails_with_that_reason(
    three: None, caplog: pytest.LogCaptureFixture
) -> None:
    heard("a", 24.1)
    heard("b", 23.9)
    assert reap() == Reaped(failed=1)
    assert tasks()["a"][0] == "Error"
    assert tasks()["a"][3] == SILENCE
    assert rows() == {"a": ("ended", 1), "b": ("running", 1), "c": ("running", 1)}
    line = "Reaped jobs: 0 reported again, 1 failed for silence"
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING] == [line]
    assert reap() == Reaped()


def test_to_wait_is_no_silence(outbox: Outbox) -> None:
    recorded("a", "b")
    Job.objects.filter(task__job_id="a").update(state="waiting", sent_at=None)
    for job in "ab":
        heard(job, 1_000)
    assert reap() == Reaped()


def test_a_sign_of_life_is_one_of_the_job_and_not_of_its_worker(three: None) -> None:
    for job in "abc":
        heard(job, 25)
    for job, is_heard in (("b", True), ("c", False)):
        its = Job.objects.get(task__job_id=job)
        its_process_looked(its.pk, is_heard=is_heard)
    beats(NODE)
    assert reap() == Reaped(failed=2)
    assert rows()["b"] == ("running", 1)


@pytest.fixture
def look(outbox: Outbox) -> Callable[[], int]:
    """Have a worker beat and look after its jobs. It returns how many statements it asked."""
    worker, passes = worker_of_jobs(), itertools.count(1)

    def beat_and_look() -> int:
        with CaptureQueriesContext(connection) as asked:
            worker._beat()
            worker._look_after_jobs(next(passes))
        return len(asked)

    return beat_and_look


def test_an_idle_node_asks_three_questions_in_two_seconds_and_two_more_in_ten(look: Callable[[], int]) -> None:
    assert [look() for _ in range(20)] == [2, 1, 2, 1, 4, 1, 2, 1, 2, 1] * 2


def test_a_node_whose_queue_has_a_job_for_later_asks_each_second_and_sends_it_in_time(
    look: Callable[[], int], outbox: Outbox
) -> None:
    recorded("j", options={"countdown": 3600})
    assert [look() for _ in range(10)] == [2, 2, 2, 2, 4] * 2
    Job.objects.update(not_before=Now())
    look()
    assert outbox.taken() == [("j", 0)]


def test_a_process_that_died_is_found_by_the_next_pass_although_celery_still_has_it_in_the_pool(
    running: Any, outbox: Outbox
) -> None:
    worker, process, called = worker_of_jobs(), Process(target=os._exit, args=(9,)), list[object]()
    worker._consumer.pool = SimpleNamespace(_pool=SimpleNamespace(_pool=[process], maintain_pool="maintain"))
    worker._consumer.hub = SimpleNamespace(call_soon=called.append)
    process.start()
    process.join()
    Job.objects.update(node=worker.id, process=process.pid)
    worker._look_after_jobs(1)
    assert (outbox.taken(), called) == ([("j", 1)], ["maintain"]), "its job is sent, and it is replaced"


def test_a_process_that_dies_is_found_before_the_next_pass_is_due_although_celery_has_replaced_it(
    running: Any, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, pool = worker_of_jobs(), [SimpleNamespace(pid=pid, exitcode=None) for pid in (1, 2)]
    monkeypatch.setattr(worker, "_processes", lambda: pool)
    Job.objects.update(node=worker.id, process=2)
    worker._look_at_pool()
    assert outbox.taken() == [], "it lives"
    pool[1] = SimpleNamespace(pid=3, exitcode=None)
    worker._look_at_pool()
    assert outbox.taken() == [("j", 1)]


def test_a_worker_looks_at_its_pool_between_two_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, looks = worker_of_jobs(), list[object]()
    monkeypatch.setattr(live_workers, "BEAT_SECONDS", 3600)
    monkeypatch.setattr(worker, "_look_at_pool", lambda: looks.append(None))
    thread = threading.Thread(target=worker._pass_on)
    thread.start()
    try:
        wait_for(lambda: len(looks) > 1, "two looks", seconds=30)
    finally:
        worker._ending.set()
        thread.join()


@pytest.mark.parametrize("state", ["waiting", "sent"])
def test_a_job_that_was_left_behind_is_sent_within_five_beats(
    look: Callable[[], int], outbox: Outbox, state: str
) -> None:
    recorded("j")
    outbox.take()
    Job.objects.update(state=state, sent_at=Now() - timedelta(days=1))
    for _ in range(5):
        look()
    assert outbox.taken() == [("j", 0)]


def test_a_stop_that_takes_minutes_holds_up_no_release(
    running: Any, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node alone knows which processes of its pool are dead."""
    worker, stop_may_end, carried_out = worker_of_jobs(), threading.Event(), list[bool]()
    monkeypatch.setattr(terms, "carry_out", lambda: carried_out.append(stop_may_end.wait(10)))
    Failure.objects.create(execution_id=1)
    worker._look_after_jobs(1)
    Job.objects.update(node=worker.id, process=0)
    worker._look_after_jobs(2)
    assert (outbox.taken(), carried_out) == ([("j", 1)], [])
    stop_may_end.set()
    wait_for(lambda: carried_out == [True], "the one thread that carries it out")
