"""on_failure and on_first_error: what a failed job does to the rest of its execution, and who is told of it."""

from typing import Any

import pytest
from celery import chain, shared_task
from django.db import connection, transaction

from harbor_refresh.celery import app
from harbor_refresh.executions.deliveries.deliverer import due_handlers, run_handler, write_deliveries
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Callback, Execution
from harbor_refresh.executions.news import callbacks
from harbor_refresh.tasks.jobs import EndedExecution, Handle, TrackedExecution, TrackedJob, start, terms
from harbor_refresh.tasks.jobs.database import run
from harbor_refresh.tasks.jobs.terms import FAILED, carry_out, have_carried_out
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.models.terms import Failure, Terms
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.testing import eager
from tests.integration.concurrency import at_once, transaction_held_open
from tests.integration.database_state import deadlocks_so_far
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, ends
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database")

told: list[tuple[Any, ...]] = []
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_has_happened() -> None:
    told.clear()
    ran.clear()


@app.task(base=TrackedJob, name="failures.scan", shared=False)
def scan(job: Handle, name: str = "") -> None:
    pass


@shared_task(base=TrackedJob, name="failures.work")
def work(job: Handle, name: str, fails: bool = False) -> None:
    ran.append(name)
    if fails:
        raise ValueError(f"{name} is broken")


@shared_task(name="failures.note")
def note(ended: EndedExecution, word: str = "") -> None:
    failures = [one.message for one in ended.change.first_failures]
    told.append((word, ended.execution_id, ended.status, ended.revision, failures))


def scanned(jobs: int = 3, **options: Any) -> TrackedExecution:
    return start("SCAN", jobs=[scan.s(str(number)) for number in range(jobs)], **options)


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


def test_a_failure_is_noted_with_it_so_a_crash_before_the_stop_leaves_it_to_the_next_pass(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = scanned(on_failure="stop")

    class Died(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Died

    fails(execution)
    with monkeypatch.context() as dying:
        dying.setattr(terms, "stop_many", die)
        with pytest.raises(Died):
            carry_out()
    assert (Failure.objects.count(), statuses(execution)[0]) == (1, "Running")
    with transaction.atomic():
        fails(execution)
        transaction.set_rollback(True)
    assert Failure.objects.count() == 1, "a failure that was rolled back is none"
    assert carry_out() == 1
    assert statuses(execution) == ("Error", ["Error", "Stopped", "Stopped"])


def test_an_execution_that_cannot_be_stopped_holds_up_no_other(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = scanned(on_failure="stop"), scanned(on_failure="stop")
    for one in (broken, sound):
        fails(one)
    stop = terms.stop_many

    def stops(execution_ids: list[int], message: str) -> Any:
        if execution_ids == [broken.pk]:
            raise ValueError("no")
        return stop(execution_ids, message)

    monkeypatch.setattr(terms, "stop_many", stops)
    assert carry_out() == 1
    assert statuses(sound)[0] == "Error"
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == [
        f"What the terms of execution {broken.pk} say cannot be done yet"
    ]


def test_an_execution_that_another_transaction_holds_is_left_to_the_next_pass(outbox: Outbox) -> None:
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


def test_a_child_that_has_failed_is_a_failed_task_and_what_is_stopped_has_children(outbox: Outbox) -> None:
    parent = scanned(1, on_failure="stop")
    failing, sibling = scanned(1, parent=parent), scanned(2, parent=parent)
    ends(failing, "Error")
    assert carry_out() == 1
    assert statuses(parent) == ("Error", ["Stopped", "Error", "Stopped"])
    assert statuses(sibling) == ("Stopped", ["Stopped", "Stopped"])


def test_the_rest_that_runs_again_is_stopped_by_the_next_failure_and_by_no_other(outbox: Outbox) -> None:
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


def test_what_was_tried_again_before_the_rest_was_stopped_goes_on(outbox: Outbox) -> None:
    execution = scanned(on_failure="stop")
    fails(execution)
    assert execution.retry_failed() == 1
    assert carry_out() == 1
    assert statuses(execution) == ("Running", ["Pending"] * 3)


def test_a_core_with_a_role_of_its_own_needs_no_right_for_the_note(outbox: Outbox) -> None:
    """It has those of docs/howto/job_service_hook.md alone."""
    execution = scanned(on_failure="stop")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE ROLE failing_core;"
            "GRANT SELECT, UPDATE ON task, execution_job, execution_need TO failing_core;"
            "SET ROLE failing_core"
        )
        cursor.execute(
            "UPDATE task SET status = 'Error', status_code = 3, end_time = now() WHERE id ="
            " (SELECT min(id) FROM task)"
        )
        cursor.execute("RESET ROLE; DROP OWNED BY failing_core; DROP ROLE failing_core")
    assert carry_out() == 1
    assert statuses(execution) == ("Error", ["Error", "Stopped", "Stopped"])


def test_a_deletion_leaves_nothing_to_do(outbox: Outbox) -> None:
    execution = scanned(on_failure="stop")
    fails(execution)
    delete([execution.pk])
    assert not Terms.objects.exists()
    assert (carry_out(), carry_out()) == (1, 0)


def test_failures_of_two_executions_in_any_order_do_not_deadlock(outbox: Outbox) -> None:
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


def test_two_passes_at_once_stop_and_tell_once(outbox: Outbox) -> None:
    execution = scanned(6, on_failure="stop", on_first_error=note.s())
    fails(execution)
    at_once(*[carry_out] * 4)
    assert statuses(execution) == ("Error", ["Error", *["Stopped"] * 5])
    assert [one[:4] for one in deliver()] == [("", execution.pk, "Running", 0)]


def test_the_first_failure_is_told_once_while_the_others_run(outbox: Outbox) -> None:
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


def test_a_first_failure_that_was_told_wakes_no_run(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = scanned(on_first_error=note.s())
    woken: list[str] = []
    monkeypatch.setattr(callbacks, "tell_changes_written_after_commit", lambda: woken.append("woken"))
    for _ in range(2):
        callbacks.tell_first_failure(execution.pk)
    assert woken == ["woken"]


def test_a_failure_that_ends_the_execution_is_told_before_its_end(outbox: Outbox) -> None:
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
def test_another_consequence_is_refused(value: Any, outbox: Outbox) -> None:
    with pytest.raises(Refused, match='on_failure takes "continue" or "stop", and got'):
        scanned(on_failure=value)
    with pytest.raises(Refused, match="on_first_error takes the signature of a plain Celery task"):
        scanned(on_first_error=scan)
    assert not Execution.objects.exists()


def test_an_execution_without_terms_costs_no_row(outbox: Outbox) -> None:
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


def has_consequences() -> bool:
    [(*_, found)] = run("to_do", node=1, ttl=5)
    return bool(found)


def test_a_worker_asks_for_recovery_if_a_failure_is_noted(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(wakeup, "send", asked.append)
    execution = scanned(on_failure="stop")
    assert not has_consequences()
    fails(execution)
    assert has_consequences()
    have_carried_out()
    assert asked == ["tasks.recover_stale"]
