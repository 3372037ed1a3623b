"""on_failure, on_first_error and deadline: when the rest of an execution is stopped, and who is told of it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from celery import chain, shared_task
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from harbor_refresh.executions.errors import QueueUnavailable, Refused
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Callback, Execution
from harbor_refresh.executions.news import callbacks
from harbor_refresh.executions.news.deliveries.deliverer import due_handlers, run_handler, write_deliveries
from harbor_refresh.tasks.celery_tasks import recover_stale
from harbor_refresh.tasks.jobs import (
    EndedExecution,
    Handle,
    TrackedExecution,
    TrackedJob,
    job,
    needs,
    start,
    terms,
)
from harbor_refresh.tasks.jobs.terms import FAILED, OVERDUE, carry_out
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.terms import Failure, Terms
from harbor_refresh.testing import eager
from tests.integration.concurrency import transaction_held_open
from tests.integration.database_state import deadlocks_so_far
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, ends
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database", "outbox")

told: list[tuple[Any, ...]] = []
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_has_happened() -> None:
    told.clear()
    ran.clear()


@shared_task(base=TrackedJob, name="failures.work")
def work(job: Handle, name: str = "", fails: bool = False, seconds: float = 0) -> None:
    ran.append(name)
    until = time.monotonic() + seconds
    while not job.should_stop() and time.monotonic() < until:
        time.sleep(0.05)
    if fails:
        raise ValueError(f"{name} is broken")


@shared_task(name="failures.note")
def note(ended: EndedExecution, word: str = "") -> None:
    failures = [one.message for one in ended.change.first_failures]
    told.append((word, ended.execution_id, ended.status, ended.revision, failures))


def scanned(jobs: int = 3, **options: Any) -> TrackedExecution:
    return start("SCAN", jobs=[work.s(str(number)) for number in range(jobs)], **options)


def fails(execution: Execution, number: int = 0) -> None:
    """One of its jobs fails, as any program would report it."""
    task = execution.tasks.filter(status_code__lt=3).order_by("pk")[number]
    assert report([Report(task.pk, "Error", task.status_revision, "broken")]).applied == 1


def statuses(execution: Execution) -> tuple[str, list[str]]:
    refresh([execution.pk])
    execution.refresh_from_db()
    return execution.status, list(execution.tasks.order_by("pk").values_list("status", flat=True))


def deliver() -> list[tuple[Any, ...]]:
    told.clear()
    write_deliveries()
    for subscription_id in due_handlers():
        while run_handler(subscription_id):
            pass
    return list(told)


def test_the_rest_is_stopped_at_the_first_failure(outbox: Outbox) -> None:
    """celery#4547: a job that waits never begins, and one that runs is asked to stop."""
    execution, other = scanned(on_failure="stop"), scanned()
    beats()
    running = begun(outbox.take()[2])
    assert running
    for one in (execution, other):
        fails(one)
    assert carry_out() == 1
    assert statuses(execution) == ("Error", ["Error", "Stopped", "Stopped"])
    assert statuses(other) == ("Running", ["Error", "Pending", "Pending"])
    assert set(execution.tasks.values_list("status_message", flat=True)) == {"broken", FAILED}
    assert execution.status_message == FAILED
    assert set(Job.objects.filter(task__execution=execution).values_list("state", "node")) == {("ended", None)}
    assert (carry_out(), Failure.objects.count()) == (0, 0)


def test_a_clean_up_and_the_jobs_behind_it_go_on_unless_they_need_a_job_that_is_stopped(outbox: Outbox) -> None:
    a, b = job(work.s("a"), name="a"), job(work.s("b"))
    clean_up = job(chain(work.si("first"), work.si("last")), needs=needs("a", b, even_if_failed=True))
    both = job(work.si("both"), needs=[clean_up, b])
    execution = start("SCAN", jobs=[work.s("other"), a, both], on_failure="stop")
    fails(execution, 1)
    assert carry_out() == 1
    assert {one.args[0]: one.task.status for one in Job.objects.select_related("task")} == {
        "a": "Error",
        "b": "Stopped",
        "first": "Pending",
        "last": "Pending",
        "both": "Stopped",
        "other": "Stopped",
    }
    assert Job.objects.get(args=["first"]).waits_for == 0
    ends(execution)
    assert (execution.status, execution.status_message) == ("Error", FAILED)


def test_the_jobs_behind_a_clean_up_that_has_ended_go_on(outbox: Outbox) -> None:
    clean_up = chain(work.si("first"), work.si("last"), work.si("late"))
    execution = start(
        "SCAN",
        jobs=[a := job(work.s("a"), name="a"), job(clean_up, needs=needs(a, even_if_failed=True))],
        on_failure="stop",
    )
    fails(execution)
    first = execution.tasks.get(job__args=["first"])
    report([Report(first.pk, "Success", first.status_revision)])
    assert carry_out() == 1
    assert statuses(execution) == ("Running", ["Error", "Success", "Pending", "Pending"])


def test_in_eager_mode_a_clean_up_runs_after_the_job_that_failed() -> None:
    a, b = job(work.s("a", fails=True)), job(work.s("b"))
    clean_up = job(work.si("c"), needs=needs(a, b, even_if_failed=True))
    with eager():
        execution = start("SCAN", jobs=[clean_up], on_failure="stop")
    assert (execution.status, ran) == ("Error", ["a", "c"])


def test_a_failure_is_noted_with_it_so_a_crash_before_the_stop_leaves_it_to_the_next_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = scanned(on_failure="stop")

    fails(execution)
    with monkeypatch.context() as dying:
        dying.setattr(terms, "stop_many", Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            carry_out()
    assert (Failure.objects.count(), statuses(execution)[0]) == (1, "Running")
    with transaction.atomic():
        fails(execution)
        transaction.set_rollback(True)
    assert Failure.objects.count() == 1, "a failure that was rolled back is none"
    assert carry_out() == 1
    assert statuses(execution) == ("Error", ["Error", "Stopped", "Stopped"])


def test_an_execution_that_cannot_be_stopped_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = scanned(on_failure="stop"), scanned(on_failure="stop")
    for one in (broken, sound):
        fails(one)
    stop = terms.stop_many

    def stops(execution_ids: list[int], message: str, spared: Any) -> Any:
        if execution_ids == [broken.pk]:
            raise ValueError("no")
        return stop(execution_ids, message, spared)

    monkeypatch.setattr(terms, "stop_many", stops)
    assert carry_out() == 1
    assert statuses(sound)[0] == "Error"
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == [
        f"What the terms of execution {broken.pk} say cannot be done yet"
    ]


def test_an_execution_that_another_transaction_holds_is_left_to_the_next_pass() -> None:
    """So a long stop takes one process, and not one with each pass."""
    held, free = scanned(on_failure="stop"), scanned(on_failure="stop")
    for one in (held, free):
        fails(one)
    with transaction_held_open(lambda: Execution.objects.select_for_update().get(pk=held.pk)) as commit:
        assert carry_out() == 1
        assert list(Failure.objects.values_list("execution_id", flat=True)) == [held.pk]
        commit()
    assert carry_out() == 1
    assert [statuses(one)[0] for one in (held, free)] == ["Error", "Error"]


def test_a_child_that_has_failed_is_a_failed_task_and_what_is_stopped_has_children() -> None:
    parent = scanned(1, on_failure="stop")
    failing, sibling = scanned(1, parent=parent), scanned(2, parent=parent)
    ends(failing, "Error")
    assert carry_out() == 1
    assert statuses(parent) == ("Error", ["Stopped", "Error", "Stopped"])
    assert statuses(sibling) == ("Stopped", ["Stopped", "Stopped"])


def test_the_rest_that_runs_again_is_stopped_by_the_next_failure_and_by_no_other() -> None:
    execution = scanned(on_failure="stop")
    fails(execution)
    assert carry_out() == 1
    assert execution.resume_stopped() == 2
    assert (carry_out(), statuses(execution), execution.status_message) == (
        0,
        ("Running", ["Error", "Pending", "Pending"]),
        "",
    )
    fails(execution)
    assert carry_out() == 1
    assert statuses(execution) == ("Error", ["Error", "Error", "Stopped"])


def test_what_was_tried_again_before_the_rest_was_stopped_goes_on() -> None:
    execution = scanned(on_failure="stop")
    fails(execution)
    assert execution.retry_failed() == 1
    assert carry_out() == 1
    assert statuses(execution) == ("Running", ["Pending"] * 3)


def test_a_deletion_leaves_nothing_to_do() -> None:
    execution = scanned(on_failure="stop")
    fails(execution)
    delete([execution.pk])
    assert not Terms.objects.exists()
    assert (carry_out(), carry_out()) == (1, 0)


def test_failures_of_two_executions_in_any_order_do_not_deadlock() -> None:
    """Each transaction fails a job of each. A note of a failure locks nothing."""
    one, other = scanned(8, on_failure="stop"), scanned(8, on_failure="stop")
    before = deadlocks_so_far()

    def fail_both(number: int, *executions: Execution) -> None:
        for execution in executions:
            fails(execution, number)

    with transaction_held_open(lambda: fail_both(0, one, other)) as commit:
        with transaction.atomic():
            fail_both(4, other, one)
        assert Failure.objects.count() == 2
        commit()
    assert (Failure.objects.count(), carry_out(), deadlocks_so_far()) == (4, 2, before)


def test_the_first_failure_is_told_once_while_the_others_run() -> None:
    """Beside the callbacks of the end, which come later."""
    execution = scanned(on_first_error=note.s("first"), on_error=note.s("error"), on_success=note.s("success"))
    assert deliver() == []
    fails(execution)
    carry_out()
    assert deliver() == [("first", execution.pk, "Running", 0, ["broken"])]
    fails(execution)
    assert (Failure.objects.count(), carry_out(), deliver()) == (0, 0, [])
    assert ends(execution) == "Error"
    assert [one[:4] for one in deliver()] == [("error", execution.pk, "Error", 1)]
    assert execution.retry_failed() == 2
    fails(execution)
    carry_out()
    assert deliver() == [], "once, also if it is tried again"


def test_a_failure_that_ends_the_execution_is_told_before_its_end() -> None:
    execution = scanned(1, on_first_error=note.s("first"), on_complete=note.s("end"))
    ends(execution, "Error")
    carry_out()
    assert [one[:4] for one in deliver()] == [
        ("first", execution.pk, "Running", 0),
        ("end", execution.pk, "Error", 1),
    ]
    delete([execution.pk])
    assert not Callback.objects.exists()


@pytest.mark.parametrize("value", ["Stop", None, True, ["stop"]])
def test_another_consequence_is_refused(value: Any) -> None:
    with pytest.raises(Refused, match='on_failure takes "continue" or "stop", and got'):
        scanned(on_failure=value)
    with pytest.raises(Refused, match="on_first_error takes the signature of a plain Celery task"):
        scanned(on_first_error=work)
    assert not Execution.objects.exists()


def test_an_execution_without_terms_costs_no_row() -> None:
    fails(scanned(on_error=note.s()))
    assert (Terms.objects.count(), Failure.objects.count()) == (0, 0)


@pytest.mark.parametrize("is_open", [True, False])
def test_in_eager_mode_no_job_runs_after_the_one_that_failed(is_open: bool) -> None:
    jobs = [work.s("a"), work.s("b", fails=True), work.s("c"), chain(work.si("d"), work.si("e"))]
    with transaction.atomic(), eager():
        execution = start("SCAN", jobs=jobs, on_failure="stop", on_first_error=note.s("first"), open=is_open)
        assert (execution.status, ran) == ("Error", ["a", "b"])
        assert [one[:4] for one in told] == [("first", execution.pk, "Running", 0)]
        assert execution.progress().counts == {"Success": 1, "Error": 1, "Stopped": 3}


# deadlines


def pass_time(seconds: float = 3601) -> None:
    Terms.objects.update(deadline=F("deadline") - timedelta(seconds=seconds))


def test_what_has_not_ended_by_then_is_stopped_and_says_so(outbox: Outbox, redis: Any) -> None:
    """By the pass that beat asks for every few seconds."""
    execution, other = scanned(deadline=3600), scanned(deadline=3600)
    beats()
    assert begun(outbox.take()[1])
    ends_one = execution.tasks.order_by("pk")[0]
    report([Report(ends_one.pk, "Success", 0)])
    pass_time(3000)
    recover_stale()
    assert statuses(execution) == ("Running", ["Success", "Pending", "Pending"])
    Terms.objects.filter(pk=execution.pk).update(deadline=Now())
    recover_stale()
    assert statuses(execution) == ("Stopped", ["Success", "Stopped", "Stopped"])
    assert execution.status_message == OVERDUE == "its deadline passed"
    assert list(execution.tasks.order_by("pk").values_list("status_message", flat=True)) == ["", OVERDUE, OVERDUE]
    assert statuses(other)[0] == "Running"
    assert set(Job.objects.filter(task__execution=execution).values_list("state", flat=True)) == {"ended"}


def test_a_deadline_is_kept_while_the_redis_of_the_queue_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another broker the pass comes all the same, and a deadline needs PostgreSQL alone."""

    def down(**_: Any) -> int:
        raise QueueUnavailable("Redis: down")

    execution = scanned(1, deadline=3600)
    pass_time()
    monkeypatch.setattr("harbor_refresh.tasks.celery_tasks.recover", down)
    monkeypatch.setattr("harbor_refresh.tasks.celery_tasks.waiting", lambda queue: 0)
    with pytest.raises(QueueUnavailable):
        recover_stale()
    assert statuses(execution) == ("Stopped", ["Stopped"])


def test_a_failure_whose_consequences_the_database_refuses_holds_up_no_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(execution_id: int) -> None:
        raise IntegrityError

    execution = scanned(2, on_first_error=note.s(), deadline=3600)
    Failure.objects.create(execution_id=execution.pk)
    pass_time()
    monkeypatch.setattr(callbacks, "tell_first_failure", refuse)
    carry_out()
    assert statuses(execution)[1] == ["Stopped", "Stopped"]
    assert Failure.objects.exists()


def test_an_execution_that_has_ended_keeps_its_status() -> None:
    ended, unseen = scanned(deadline=3600), scanned(deadline=3600)
    ends(ended)
    report(Report(pk, "Success", 0) for pk in unseen.tasks.values_list("pk", flat=True))
    pass_time()
    assert carry_out() == 2
    for one in (ended, unseen):
        assert (statuses(one)[0], one.status_message) == ("Success", "")
    assert carry_out() == 0


def test_what_runs_again_after_it_has_no_deadline() -> None:
    execution = scanned(deadline=3600)
    pass_time()
    carry_out()
    assert execution.resume_stopped() == 3
    assert (carry_out(), statuses(execution)[0], execution.status_message) == (0, "Running", "")
    ends(execution)
    assert execution.status == "Success"


def test_what_runs_again_before_it_is_stopped_by_it() -> None:
    execution = scanned(deadline=3600)
    ends(execution, "Error")
    assert execution.retry_failed() == 3
    assert carry_out() == 0
    pass_time()
    assert carry_out() == 1
    assert statuses(execution) == ("Stopped", ["Stopped"] * 3)
    assert execution.status_message == OVERDUE


def test_an_open_execution_is_closed_by_it_and_children_are_stopped() -> None:
    parent = scanned(0, open=True, deadline=3600)
    child = start("SCAN", jobs=[work.s()], parent=parent)
    pass_time()
    assert carry_out() == 1
    assert (statuses(parent)[0], statuses(child)[0]) == ("Stopped", "Stopped")
    assert parent.status_message == OVERDUE
    assert child.resume_stopped() == 1
    assert (statuses(parent)[0], parent.status_message) == ("Running", "")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (lambda _: 90, 90),
        (lambda moment: moment.replace(tzinfo=None), 2 * 86400),
        (lambda moment: moment.isoformat(), 2 * 86400),
    ],
    ids=["seconds", "without a zone", "text"],
)
def test_it_is_seconds_or_a_moment(given: Callable[[datetime], Any], seconds: float) -> None:
    scanned(deadline=given(datetime.now(UTC) + timedelta(days=2)))
    deadline = Terms.objects.get().deadline
    assert deadline
    assert abs((deadline - timezone.now()).total_seconds() - seconds) < 600


@pytest.mark.parametrize("given", [0, True, "soon", [], float("nan"), 400 * 86400, timedelta(1), "2020-01-01"])
def test_another_deadline_is_refused(given: Any) -> None:
    with pytest.raises(
        Refused, match=r"start: deadline takes a number of seconds above 0 .*, or a moment that is still to come"
    ):
        scanned(deadline=given)
    assert not Execution.objects.exists()


def test_a_start_of_the_same_name_after_the_deadline_finds_its_execution() -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    execution = scanned(once="tonight", deadline=soon)
    parent = scanned(0, open=True)
    child = scanned(parent=parent, once="tonight", deadline=soon)
    past = datetime.now(UTC) - timedelta(seconds=1)
    found = [scanned(once="tonight", deadline=past), scanned(parent=parent, once="tonight", deadline=past)]
    assert [(one.pk, one.is_new) for one in found] == [(execution.pk, False), (child.pk, False)]
    with pytest.raises(Refused, match="a moment that is still to come"):
        scanned(once="tomorrow", deadline=past)
    assert Execution.objects.count() == 3


def test_in_eager_mode_no_job_begins_after_it() -> None:
    with eager():
        execution = start("SCAN", jobs=[work.s("a", seconds=0.6), work.s("b")], deadline=0.3)
    assert (ran, execution.status, execution.progress().counts) == (["a"], "Stopped", {"Success": 1, "Stopped": 1})


def test_the_page_of_an_execution_tells_its_terms(admin: Client) -> None:
    execution, without = scanned(once="tonight", on_failure="stop", deadline=3600), start("SCAN", jobs=[work.s()])
    deadline = timezone.localtime(Terms.objects.get().deadline)
    pages = [
        admin.get(f"/admin/harbor_executions/execution/{one.pk}/change/").content.decode()
        for one in (execution, without)
    ]
    text = f"once: tonight; deadline: {deadline:%Y-%m-%d %H:%M:%S}; a failed job stops the rest"
    assert [text in one for one in pages] == [True, False]
    assert "terms_of_it" not in pages[1]
