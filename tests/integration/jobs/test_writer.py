"""The writer with its thread: ends in batches, past trouble, and what a run says and learns while it goes on."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from celery.exceptions import Ignore, Reject
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import CODES, Status
from harbor_refresh.tasks.jobs import Handle, outcomes, sender
from harbor_refresh.tasks.jobs.again import resume_stopped
from harbor_refresh.tasks.jobs.live_workers import release_runs_without_worker, this_worker
from harbor_refresh.tasks.jobs.outcomes import Outcome, Taken
from harbor_refresh.tasks.jobs.running import tracked, writer
from harbor_refresh.tasks.jobs.running.handle import begin
from harbor_refresh.tasks.jobs.running.writer import Writer
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.pipeline.per_process import PerProcess
from tests.integration.concurrency import statement_held_open, transaction_held_open
from tests.integration.jobs.sample_jobs import (
    QUEUE,
    Outbox,
    Port,
    beats,
    begun,
    database_port,
    delivered,
    job,
    recorded,
    rows,
    tasks,
    tasks_refuse,
    tasks_refuse_no_more,
)
from tests.integration.jobs.test_a_run_in_its_process import one
from tests.integration.sample_executions import delete
from tests.integration.statements import statement
from tests.started import start
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database")

LOCK_NOT_AVAILABLE = "55P03"


@pytest.fixture(autouse=True)
def this_writer(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    """That of this process, a worker. It pauses as briefly as it can."""
    beats(this_worker.id)
    for name in ("PAUSE_SECONDS", "LOOK_SECONDS", "MOMENT"):
        monkeypatch.setattr(writer, name, 0.02)
    monkeypatch.setattr(tracked, "PAUSE_SECONDS", 0)
    its: PerProcess[Writer] = PerProcess(Writer)
    monkeypatch.setattr(writer, "of_this_process", its)
    yield its.get()
    its.stop()


@pytest.fixture
def searches(this_writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It often looks for rows which say that a job runs here, and it does not."""
    monkeypatch.setattr(writer, "UNKNOWN_SECONDS", 0.02)


class Gate:
    """Counts the tries to write outcomes, and the outcomes of each. While it is shut, none is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.tries = 0
        self.open = threading.Event()
        self._take = writer.take_apart
        monkeypatch.setattr(writer, "take_apart", self)

    def __call__(self, outcomes: Sequence[Outcome]) -> Taken:
        self.tries += bool(outcomes)
        self.sizes += [len(outcomes)] if outcomes else []
        assert not outcomes or self.open.wait(60)
        return self._take(outcomes)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    its = Gate(monkeypatch)
    yield its
    its.open.set()


@pytest.fixture
def port() -> Iterator[Port]:
    with database_port() as its:
        yield its


def ends(outbox: Outbox, this_writer: Writer, *names: str) -> None:
    """These jobs begin, and all of them succeed. Some are perhaps sent by the writer, after other ends."""
    recorded(*names)
    sent = Job.objects.filter(task__job_id__in=names, state="sent")
    wait_for(lambda: len(outbox.messages) == sent.count() > 0, "their messages")
    for message in outbox.take():
        found = begun(message, node=this_worker.id)
        assert found is not None
        this_writer.end(Outcome(found.run, Status.SUCCESS, queue=QUEUE))


def is_sent_while_ends_come(outbox: Outbox, this_writer: Writer, end: Outcome) -> bool:
    this_writer.end(end)
    return bool(outbox.messages)


def are_written(*names: str) -> None:
    def ended() -> int:
        return Job.objects.filter(task__job_id__in=names, state="ended").count()

    wait_for(lambda: ended() == len(names), "the ends to be written")


def becomes(name: str, status: str) -> None:
    wait_for(lambda: tasks()[name][0] == status, f"{name} to be {status}")


def test_ends_that_come_together_are_written_together_and_never_too_many(
    outbox: Outbox, this_writer: Writer, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "TOGETHER", 4)
    ends(outbox, this_writer, "first")
    wait_for(lambda: gate.tries, "the first to be under way")
    ends(outbox, this_writer, *(names := "abcdefghi"))
    gate.open.set()
    are_written(*names)
    assert gate.sizes == [1, 4, 4, 1]


def test_after_the_ends_the_next_jobs_are_sent(
    outbox: Outbox, this_writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "FLOOR", 2)
    monkeypatch.setattr(sender, "EACH", 0)
    ends(outbox, this_writer, "a", "b", "c", "d")
    are_written("a", "b")
    wait_for(lambda: outbox.messages, "the next jobs")
    assert outbox.taken() == [("c", 0), ("d", 0)]


def test_while_ends_keep_coming_the_next_jobs_are_sent_before_these_are_written(
    outbox: Outbox, this_writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MOMENT": 0.5, "EACH": 900.0, "LONGEST": 900.0, "TOGETHER": 10**6}.items():
        monkeypatch.setattr(writer, name, value)
    monkeypatch.setattr(sender, "FLOOR", 1)
    monkeypatch.setattr(sender, "EACH", 0)
    recorded("a", "b", "c")
    for following in ("b", "c"):  # the second while it rests
        found = begun(outbox.take()[0], node=this_worker.id)
        assert found is not None
        end = Outcome(found.run, Status.SUCCESS, queue=QUEUE)
        wait_for(partial(is_sent_while_ends_come, outbox, this_writer, end), f"{following} to be sent")


def test_while_the_database_is_down_ends_wait_and_one_line_says_so(
    outbox: Outbox, gate: Gate, port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    gate.open.set()
    recorded("a", "b")
    first, second = outbox.take()

    def work(job: Handle) -> None:
        becomes("a", "Running")  # its thread is connected
        delivered(second, lambda _: port.down())

    delivered(first, work)
    wait_for(lambda: gate.tries > 3, "several tries")
    port.back()
    are_written("a", "b")
    assert {status for status, *_ in tasks().values()} == {"Success"}
    assert len([one for one in caplog.messages if one.startswith("Ends of jobs cannot be written")]) == 1


def test_an_end_that_the_database_refuses_is_alone_and_its_job_ends_as_error(
    outbox: Outbox, this_writer: Writer, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    tasks_refuse("NEW.status = 'Success' AND OLD.job_id = 'b'")
    ends(outbox, this_writer, "a", "b", "c")
    gate.open.set()
    are_written("a", "b", "c")
    assert {name: (status, said) for name, (status, _, _, said) in tasks().items()} == {
        "a": ("Success", ""),
        "b": ("Error", "its end cannot be written: the database refuses it"),
        "c": ("Success", ""),
    }
    assert f"The end of task {job('b').pk} cannot be written: no more" in caplog.text


def test_a_task_that_refuses_every_end_ends_no_thread(outbox: Outbox, this_writer: Writer) -> None:
    tasks_refuse("OLD.job_id = 'b'")
    ends(outbox, this_writer, "a", "b", "c")
    are_written("a", "c")
    ends(outbox, this_writer, "d")
    are_written("d")
    assert rows()["b"] == ("running", 1)
    tasks_refuse_no_more()


def test_a_run_that_goes_on_is_shown_as_running_after_one_that_did_not(outbox: Outbox) -> None:
    delivered(one(outbox, "short"), lambda job: None)
    are_written("short")
    delivered(one(outbox, "long"), lambda job: becomes("long", "Running"))
    becomes("long", "Success")


def test_the_last_check_in_is_in_the_row_while_the_job_runs(outbox: Outbox) -> None:
    def says(*said: Any) -> None:
        values = dict(zip(("message", "done", "of"), said, strict=True))
        wait_for(lambda: job("a").check_in == values, "the check-in")

    def work(job: Handle) -> None:
        job.check_in("copying", done=3, of=7)
        assert not job.should_stop()
        says("copying", 3, 7)
        job.check_in(done=4, of=7)
        says("", 4, 7)
        job.check_in("x" * 3_000)
        says("x" * 2_000, None, None)

    delivered(one(outbox), work)
    becomes("a", "Success")
    assert job("a").check_in is None


def test_a_check_in_whose_row_is_locked_is_written_afterwards(
    outbox: Outbox, this_writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[bool]()
    ask = this_writer._ask
    monkeypatch.setattr(this_writer, "_ask", lambda current: (ask(current), looks.append(True)))

    def work(handle: Handle) -> None:
        with statement_held_open("SELECT FROM execution_job FOR NO KEY UPDATE"):
            handle.check_in("copying")
            seen = len(looks)
            wait_for(lambda: len(looks) > seen + 2, "looks that cannot note it")
            assert job("a").check_in is None
        wait_for(lambda: job("a").check_in, "the check-in")

    delivered(one(outbox), work)


def test_the_last_run_that_has_begun_is_noted_in_the_row_of_the_node(outbox: Outbox) -> None:
    recorded("j")
    (message,) = outbox.take()
    delivered(message, lambda _: None)
    its = Node.objects.filter(pk=this_worker.id)
    wait_for(lambda: its.get().began.get("") == {QUEUE: message.task_id}, "the run to be noted")
    assert time.time() - its.get().began[QUEUE] < 600


def test_a_job_that_asks_whether_it_should_stop_is_heard_of(outbox: Outbox) -> None:
    def work(handle: Handle) -> None:
        before = job("a").heard_at

        def is_heard() -> bool:
            handle.should_stop()
            return job("a").heard_at != before

        wait_for(is_heard, "it to be heard of")

    delivered(one(outbox), work)


def its_node_is_dead(job: Handle) -> None:
    Node.objects.filter(pk=this_worker.id).delete()
    release_runs_without_worker()


@pytest.mark.parametrize(
    ("ends", "then"),
    [(lambda job: stop_jobs(job.execution.pk), "Stopped"), (its_node_is_dead, "Pending")],
    ids=["stopped", "given to another node"],
)
def test_a_run_that_does_not_stand_any_more_learns_it(
    ends: Callable[[Handle], Any], then: str, outbox: Outbox
) -> None:
    def work(job: Handle) -> None:
        assert not job.should_stop()
        ends(job)
        wait_for(job.should_stop, "it to learn that")

    delivered(one(outbox), work)
    writer.of_this_process.stop()
    assert tasks()["a"][0] == then, "its own end changes nothing"


def test_a_run_that_was_stopped_learns_it_although_the_next_run_has_begun_in_the_same_process(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a pool of threads."""
    monkeypatch.setattr(writer, "LOOK_SECONDS", 600)

    def work(old: Handle) -> None:
        def goes_on(new: Handle) -> None:
            monkeypatch.setattr(writer, "LOOK_SECONDS", 0.02)
            wait_for(old.should_stop, "the old run to learn it")
            assert not new.should_stop()

        stop_jobs(old.execution.pk)
        assert resume_stopped(old.execution.pk) == 1
        delivered(*outbox.take(), goes_on)

    delivered(one(outbox), work)
    becomes("a", "Success")


@pytest.mark.usefixtures("searches")
def test_a_run_whose_process_was_told_to_end_is_released_if_the_process_goes_on(outbox: Outbox) -> None:
    """As a pool of threads does."""

    def leave(job: Handle) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        delivered(one(outbox), leave)
    wait_for(lambda: rows() == {"a": ("sent", 1)}, "its next message")
    assert tasks() == {"a": ("Pending", 1, 1, "its process died")}


def begin_and_lose(*arguments: Any) -> None:
    """The connection breaks after the commit."""
    begin(*arguments)
    raise DatabaseDown


@pytest.mark.usefixtures("searches")
def test_a_run_whose_begin_got_no_reply_is_released_by_a_process_that_has_run_nothing_yet(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.of_this_process.stop()
    monkeypatch.setattr(tracked, "begin", begin_and_lose)
    with pytest.raises(Reject):
        delivered(one(outbox), lambda _: pytest.fail("it has not begun"))
    wait_for(lambda: rows() == {"a": ("sent", 1)}, "its next message")


@pytest.mark.usefixtures("searches")
def test_a_run_that_has_begun_without_the_knowledge_of_its_process_is_released_and_no_other(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message that comes again begins nothing."""

    def work(job: Handle) -> None:
        lost = one(outbox, "lost")
        with monkeypatch.context() as patch:
            patch.setattr(tracked, "begin", begin_and_lose)
            with pytest.raises(Reject):
                delivered(lost, lambda _: pytest.fail("it has not begun"))
        with suppress(Ignore):
            delivered(lost, lambda _: pytest.fail("it has begun already"))
        wait_for(lambda: outbox.messages, "another message")
        assert rows() == {"goes on": ("running", 1), "lost": ("sent", 1)}

    delivered(one(outbox, "goes on"), work)
    delivered(*outbox.take(), lambda _: None)
    are_written("goes on", "lost")


def test_a_run_whose_end_was_lost_by_a_failover_is_released_but_not_at_once(
    outbox: Outbox, this_writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(outbox, this_writer, "a", "b")
    are_written("a", "b")
    Task.objects.update(status="Running", status_code=CODES["Running"], end_time=None)
    lost = {"state": "running", "node": this_worker.id, "process": os.getpid()}
    Job.objects.update(**lost)
    Job.objects.filter(pk=job("a").pk).update(begun_at=Now() - timedelta(seconds=60))
    monkeypatch.setattr(writer, "UNKNOWN_SECONDS", 30)
    this_writer._ask([])
    assert rows() == {"a": ("sent", 1), "b": ("running", 1)}, "b may have begun this moment"


def test_a_begin_that_cannot_be_noted_is_noted_by_a_later_look(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, the messages of its queue would count as lost."""
    run, refused = writer.run, list[bool]()

    def refuse_the_first(statement: str, **values: Any) -> list[Any]:
        if values["begun"] and not refused:
            refused.append(True)
            raise OperationalError("no")
        return run(statement, **values)

    monkeypatch.setattr(writer, "run", refuse_the_first)
    delivered(one(outbox), lambda _: None)
    wait_for(lambda: QUEUE in Node.objects.get(pk=this_worker.id).began, "the begin to be noted")
    assert refused


def test_a_run_that_another_one_with_its_number_has_replaced_learns_it_and_reports_nothing(
    outbox: Outbox,
) -> None:
    """PostgreSQL has crashed and lost the begin, and the next run is in this process as well."""
    message = one(outbox)

    def work(old: Handle) -> None:
        Job.objects.update(state="sent", run=0, node=None, process=None)
        delivered(message, lambda new: replaced(old, new))

    def replaced(old: Handle, new: Handle) -> None:
        assert (old.run, old.should_stop(), new.should_stop()) == (new.run, True, False)
        old.take(Status.ERROR, "the old run")

    delivered(message, work)
    are_written("a")
    assert tasks()["a"][0] == "Success"


def test_ends_do_not_wait_for_one_whose_task_is_locked_and_one_line_says_that_it_waits(
    outbox: Outbox, this_writer: Writer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(sender, "send_behind", lambda _, ended: sent.extend(one.run.job for one in ended))
    tasks_refuse("OLD.job_id = 'a'", LOCK_NOT_AVAILABLE)
    ends(outbox, this_writer, "a", "b", "c")
    are_written("b", "c")
    assert rows()["a"] == ("running", 1)
    line = "Ends of jobs cannot be written, trying again: 1 are locked, or take too long"
    wait_for(lambda: line in caplog.messages, "the warning")
    tasks_refuse_no_more()
    are_written("a")
    wait_for(lambda: len(sent) == 3, "each to be sent behind once")
    assert caplog.messages.count(line) == 1


@pytest.mark.parametrize(
    ("locked", "left"), [("a", "a"), ("b", "b"), ("s", "s"), ("c", "a"), ("d", "ab")], ids=lambda names: names
)
def test_a_locked_job_holds_up_its_own_end_and_the_failures_in_front_of_it_alone(
    locked: str, left: str, outbox: Outbox
) -> None:
    needs: dict[str, list[int]] = {"a": [], "b": [], "s": [], "c": [0], "d": [3, 1, 2]}
    jobs = [NewJob("a.job", job_id=one, needs=[NewNeed(place) for place in its]) for one, its in needs.items()]
    start("SCAN", [jobs])
    runs = {message.job: found.run for message in outbox.take() if (found := begun(message, node=this_worker.id))}
    ends = [Outcome(its, Status.SUCCESS if one == "s" else Status.ERROR) for one, its in runs.items()]
    with statement_held_open("SELECT FROM task WHERE job_id = %s FOR NO KEY UPDATE", [locked]) as other:
        taken = outcomes.take_apart(ends)
        other.rollback()
    assert "".join(sorted(one.run.job for one in taken.left)) == left
    assert {one.run.job for one in (*taken.stood, *taken.left)} == {"a", "b", "s"}


def test_ends_that_a_stop_holds_are_left_together(outbox: Outbox, this_writer: Writer) -> None:
    """However many they are, and although jobs behind them are locked as well."""
    pair = [NewJob("a.job"), NewJob("a.job", needs=[NewNeed(0)])]
    execution = start("SCAN", [pair] * 3)
    runs = [found.run for message in outbox.take() if (found := begun(message, node=this_worker.id))]
    ends = [Outcome(its, Status.ERROR) for its in runs]
    tasks_of_it = Task.objects.select_for_update().filter(execution=execution)
    with transaction_held_open(lambda: list(tasks_of_it)), CaptureQueriesContext(connection) as asked:
        assert outcomes.take_apart(ends).left == ends
    assert len([one for one in asked if "SELECT" in one["sql"]]) <= 5


def test_many_failures_in_front_of_one_group_look_at_each_job_of_the_group_once(outbox: Outbox) -> None:
    failures, group = 50, 1_000
    bridge = NewJob("a.job", needs=[NewNeed(place) for place in range(failures)])
    start("SCAN", [[*[NewJob("a.job")] * failures, bridge, *[NewJob("a.job", needs=[NewNeed(failures)])] * group]])
    given = list(Task.objects.order_by("pk").values_list("pk", flat=True)[:failures])
    words = statement("harbor_refresh.tasks.jobs", "find_behind")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE) {words}", {"task_ids": given})
        plan = "\n".join(line for (line,) in cursor.fetchall())
    walked = [float(rows) for rows in re.findall(r"Recursive Union .*actual.* rows=([\d.]+)", plan)]
    assert group < sum(walked) < 2 * group, plan


def test_the_error_that_replaces_a_refused_end_is_tried_again_if_its_task_is_locked(
    outbox: Outbox, this_writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_apart = writer.take_apart
    tries = [take_apart, lambda ends: Taken([], ends, []), lambda ends: Taken([], [], ends)]
    monkeypatch.setattr(writer, "take_apart", lambda ends: (tries.pop() if ends and tries else take_apart)(ends))
    ends(outbox, this_writer, "a")
    are_written("a")
    assert tasks()["a"][0] == "Error"


def test_the_end_of_a_run_whose_task_was_deleted_holds_up_no_stop(outbox: Outbox, this_writer: Writer) -> None:
    delivered(one(outbox), lambda job: delete([job.execution.pk]))
    this_writer.stop()
    assert not this_writer._ends


def test_a_process_that_stops_tries_for_some_seconds_to_write_its_ends(
    outbox: Outbox, this_writer: Writer, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "STOP_SECONDS", 60)
    gate.open.set()
    tasks_refuse("TRUE", LOCK_NOT_AVAILABLE)
    ends(outbox, this_writer, "a")
    stops = threading.Thread(target=this_writer.stop)
    stops.start()
    tried = gate.tries
    wait_for(lambda: gate.tries > tried + 2, "several tries")
    tasks_refuse_no_more()
    stops.join()
    assert rows() == {"a": ("ended", 1)}
