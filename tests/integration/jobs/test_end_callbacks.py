"""Callbacks of an execution: called at least once for each end that stands, in order, with their own arguments."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Task, chain, current_app, group, shared_task
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.housekeeping import HOUSEKEEPING
from harbor_refresh.executions.models import Callback, Delivery, Execution, StatusChange, Subscription
from harbor_refresh.executions.models.notifications import Kind
from harbor_refresh.executions.news.deliveries import subscriptions
from harbor_refresh.executions.news.deliveries.claims import MAX_ATTEMPTS
from harbor_refresh.executions.news.deliveries.deliverer import due_handlers, run_handler, write_deliveries
from harbor_refresh.tasks.jobs import EndedExecution, Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.jobs.terms import carry_out
from tests.integration.checks.examined import W, found
from tests.integration.concurrency import (
    Pause,
    in_background,
    one_after_the_other,
    statement_held_open,
    wait_until,
)
from tests.integration.database_state import waiting_for_locks
from tests.integration.executions.deliveries.changed_executions import states
from tests.integration.jobs.sample_jobs import ends
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database", "outbox")

Call = tuple[str, int, str, int, tuple[Any, ...], dict[str, Any]]

calls: list[Call] = []


@pytest.fixture(autouse=True)
def nothing_was_called() -> Iterator[None]:
    yield
    calls.clear()


def called(name: str, ended: EndedExecution, *args: Any, **kwargs: Any) -> None:
    calls.append((name, ended.execution_id, ended.status, ended.revision, args, kwargs))


@shared_task(name="callbacks.note")
def note(ended: EndedExecution, *args: Any, **kwargs: Any) -> None:
    called("note", ended, *args, **kwargs)


@shared_task(name="callbacks.other", bind=True)
def other(self: "Task[Any, Any]", ended: EndedExecution, *args: Any) -> None:
    assert self.name == "callbacks.other"
    called("other", ended, *args)


@shared_task(name="callbacks.alone")
def alone(word: str) -> None:
    calls.append(("alone", 0, "", 0, (word,), {}))


@shared_task(base=TrackedJob, name="callbacks.job")
def job(handle: Handle) -> None:
    pass


@shared_task(name="callbacks.coroutine")
async def coroutine(ended: EndedExecution) -> None:
    pass


def started(jobs: int = 1, **callbacks: Any) -> TrackedExecution:
    return start("SCAN", jobs=[job.s()] * jobs, **callbacks)


def tell() -> list[tuple[str, int, str, int]]:
    """Deliver what is due; return what was called since the last look."""
    calls.clear()
    write_deliveries()
    for subscription_id in due_handlers():
        while run_handler(subscription_id):
            pass
    return [one[:4] for one in calls]


@pytest.mark.parametrize(("status", "names"), [("Success", ["s", "c"]), ("Error", ["e", "c"]), ("Stopped", ["c"])])
def test_each_end_calls_those_that_asked_for_it_in_their_order(status: str, names: list[str]) -> None:
    execution = started(
        on_success=note.s("s", word=1), on_error=[note.s("e", word=1)], on_complete=note.s("c", word=1)
    )
    assert tell() == []
    if status == "Stopped":
        execution.stop()
    else:
        ends(execution, status)
    assert tell() == [("note", execution.pk, status, 1)] * len(names)
    assert [(args, kwargs) for *_, args, kwargs in calls] == [((name,), {"word": 1}) for name in names]
    assert tell() == []
    assert states() == {"delivered": 1}


def test_an_execution_without_a_callback_costs_no_delivery() -> None:
    ends(started())
    assert StatusChange.objects.get().told
    assert not Subscription.objects.exists()
    with_one, without = started(on_complete=note.s()), started()
    for one in (with_one, without):
        ends(one)
    assert tell() == [("note", with_one.pk, "Success", 1)]
    assert list(Delivery.objects.values_list("execution_id", flat=True)) == [with_one.pk]
    assert not StatusChange.objects.filter(told=False).exists()


def test_an_execution_without_jobs_or_one_that_is_open_is_told_when_it_has_ended_and_not_before() -> None:
    execution = start("SCAN", jobs=[], on_success=note.s())
    assert (execution.status, tell()) == ("Success", [("note", execution.pk, "Success", 1)])
    opened = started(open=True, on_complete=note.s())
    assert (ends(opened), tell()) == ("Running", [])
    opened.close()
    assert (ends(opened), tell()) == ("Success", [("note", opened.pk, "Success", 1)])


@pytest.mark.parametrize("is_told_first", [True, False])
def test_of_two_ends_the_first_is_a_call_of_its_own_if_it_is_told_before_the_execution_is_opened_again(
    is_told_first: bool,
) -> None:
    execution = started(on_error=note.s(), on_success=note.s(), on_complete=other.s())
    ends(execution, "Error")
    if is_told_first:
        assert sorted(tell()) == [("note", execution.pk, "Error", 1), ("other", execution.pk, "Error", 1)]
    assert execution.retry_failed() == 1
    assert tell() == []
    ends(execution)
    assert sorted(tell()) == [("note", execution.pk, "Success", 3), ("other", execution.pk, "Success", 3)]


@pytest.mark.parametrize(("point", "is_told"), [("listed", False), ("leased", False), ("answered", True)])
def test_an_end_that_is_opened_again_during_its_delivery_is_told_if_its_call_has_begun(
    point: str, is_told: bool
) -> None:
    execution = started(on_error=note.s())
    ends(execution, "Error")
    with Pause(point) as pause, in_background(tell) as told:
        pause.wait_until_reached()
        assert execution.retry_failed() == 1
        pause.go_on.set()
        assert told() == ([("note", execution.pk, "Error", 1)] if is_told else [])
    assert tell() == []


def raises(*_: Any, **__: Any) -> None:
    raise ConnectionError("no such channel")


def told_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due is told, and raises. It is called again in a day."""
    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.called", raises)
        tell()
    assert Delivery.objects.filter(state="pending", attempts=1).update(next_at=Now() + timedelta(days=1)) == 1


def test_an_end_that_is_skipped_does_not_delay_the_end_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = started(on_complete=note.s())
    ends(execution, "Error")
    told_in_vain(monkeypatch)
    assert execution.retry_failed() == 1
    ends(execution)
    assert tell() == [("note", execution.pk, "Success", 3)]
    Delivery.objects.filter(state="pending").update(next_at=Now())
    assert (tell(), states()) == ([], {"delivered": 2})


def test_a_first_failure_whose_call_raises_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = started(2, open=True, on_first_error=note.s(), on_complete=note.s())
    ends(execution, "Error")
    assert carry_out() == 1
    told_in_vain(monkeypatch)
    execution.close()
    ends(execution)
    assert tell() == [("note", execution.pk, "Error", 1)]
    Delivery.objects.filter(state="pending").update(next_at=Now())
    assert (tell(), states()) == ([("note", execution.pk, "Running", 0)], {"delivered": 2})


@pytest.mark.parametrize("days", [2, 4])
def test_a_callback_without_code_waits_for_it_three_days_however_often_it_is_looked_for(
    days: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    execution = started(on_complete=note.s())
    ends(execution)
    assert found("status.handlers") == []
    write_deliveries()
    with monkeypatch.context() as patch:
        patch.delitem(current_app.tasks, note.name)
        for _ in range(MAX_ATTEMPTS + 1):
            Delivery.objects.filter(state="pending").update(next_at=Now())
            assert tell() == []
        assert states() == {"pending": 1}
        assert "Handler callbacks.note has no code in this worker" in caplog.text
        ((level, what),) = found("status.handlers")
        told = "A worker does not have the code of 1 handler or callback, such as callbacks.note."
        assert (level, what[: len(told)]) == (W, told)
        Delivery.objects.update(created_at=F("created_at") - timedelta(days=days), next_at=Now())
        tell()
    row = Delivery.objects.get()
    assert row.last_error == "a worker was asked that does not have the code of this handler"
    if days > 3:
        assert row.state == "dead"
        return
    Delivery.objects.update(next_at=Now())
    assert tell() == [("note", execution.pk, "Success", 1)]
    assert found("status.handlers") == []


def test_an_end_that_moves_with_the_same_status_is_told_as_an_end_and_not_as_a_first_failure() -> None:
    execution = started(2, open=True, on_error=note.s("end"), on_first_error=note.s("first"))
    ends(execution, "Error")
    execution.stop()
    assert carry_out() == 1
    assert [args for *_, args, _ in (tell() and calls)] == [("first",), ("end",)]
    assert execution.resume_stopped() == 0  # its gate alone was stopped
    assert [args for *_, args, _ in (tell() and calls)] == [("end",)]
    assert (execution.status, execution.revision) == ("Error", 2)


def test_a_callback_gets_the_execution_and_an_immutable_one_its_own_arguments_alone() -> None:
    seen: list[EndedExecution] = []

    @shared_task(name="callbacks.seeing")
    def seeing(ended: EndedExecution) -> None:
        seen.append(ended)

    execution = started(2, on_success=seeing.s(), on_complete=alone.si("word"))
    ends(execution)
    tell()
    assert calls == [("alone", 0, "", 0, ("word",), {})]
    (ended,) = seen
    assert (ended.execution, ended.change.counts) == (execution, {"Success": 2})
    assert ended.id == f"status_{execution.pk}_1_{Subscription.objects.get(handler='callbacks.seeing').pk}"
    delete([execution.pk])
    assert ended.execution is None


def test_a_callback_is_called_although_its_execution_is_deleted_meanwhile() -> None:
    told, waiting = started(on_complete=note.s()), started(on_complete=note.s())
    ends(told)
    tell()
    ends(waiting)
    write_deliveries()
    assert delete([told.pk, waiting.pk]) == 2
    assert list(Callback.objects.values_list("execution_id", flat=True)) == [waiting.pk]
    assert tell() == [("note", waiting.pk, "Success", 1)]
    (chore,) = (one for one in HOUSEKEEPING if one.name == "callbacks of deleted executions")
    for age, gone in (("2999-01-01T00:00Z", 0), ("2026-01-01T00:00Z", 1)):
        Callback.objects.update(orphaned_at=age)
        with transaction.atomic():
            assert chore.page()[0] == gone
    assert not Callback.objects.exists()


def test_the_subscription_of_a_callback_stays_while_an_execution_has_the_callback() -> None:
    execution = started(on_complete=note.s())
    subscription = Subscription.objects.get()
    with pytest.raises(Refused, match=r"^executions have callbacks of callbacks\.note, which would be lost$"):
        subscriptions.delete(subscription.pk)
    ends(execution)
    assert tell() == [("note", execution.pk, "Success", 1)]
    delete([execution.pk])
    subscriptions.delete(subscription.pk)
    assert not Subscription.objects.exists()
    again = started(on_complete=note.s())
    ends(again)
    assert tell() == [("note", again.pk, "Success", 1)]


def test_the_first_start_with_a_callback_delays_no_other_start_with_it() -> None:
    """However many jobs it has to write."""
    with (
        statement_held_open("LOCK TABLE execution_job IN SHARE MODE") as lock,
        in_background(lambda: started(on_complete=note.s())) as first,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the first start to write its jobs")
        without_jobs = started(jobs=0, on_complete=note.s())
        assert waiting_for_locks() == 1, "the first start still writes its jobs"
        lock.rollback()
        ends(first())
    assert set(tell()) == {("note", without_jobs.pk, "Success", 1), ("note", first().pk, "Success", 1)}


def test_a_subscription_that_is_deleted_while_an_execution_is_started_stays() -> None:
    """The start is not committed when the deletion begins."""
    delete([started(on_complete=note.s()).pk])
    subscription = Subscription.objects.get()
    with pytest.raises(Refused):
        one_after_the_other(lambda: started(on_complete=note.s()), lambda: subscriptions.delete(subscription.pk))
    execution = TrackedExecution.objects.get()
    ends(execution)
    assert tell() == [("note", execution.pk, "Success", 1)]


def test_an_execution_that_is_started_while_the_subscription_is_deleted_makes_another_one() -> None:
    delete([started(on_complete=note.s()).pk])
    subscription = Subscription.objects.get()
    _, execution = one_after_the_other(
        lambda: subscriptions.delete(subscription.pk), lambda: started(on_complete=note.s())
    )
    ends(execution)
    assert tell() == [("note", execution.pk, "Success", 1)]
    assert Subscription.objects.get().pk != subscription.pk


itself: list[Any] = []
itself.append(itself)
REFUSED: dict[str, tuple[Any, str]] = {
    "a function": (lambda ended: None, "on_error takes the signature of a plain Celery task"),
    "a task": (note, "on_error takes the signature of a plain Celery task"),
    "a tracked job": (job.s(), "callbacks.job is a tracked job: start it in a plain task"),
    "a chain": (chain(note.s(), alone.s()), "chain is none"),
    "a group": (group(note.s(), note.s()), "group is none"),
    "options": (note.s().set(queue="slow"), "takes no options, because callbacks.note is not sent; got queue"),
    "a coroutine": (coroutine.s(), "is an `async def`"),
    "too many arguments": (alone.s("word"), "takes the execution before its own arguments: too many positional"),
    "a missing argument": (alone.si(), "missing a required argument: 'word'"),
    "no JSON": (note.s(object()), "takes arguments that are JSON"),
    "no number": (note.s(float("nan")), "takes arguments that are JSON"),
    "itself": (note.s(itself), "takes arguments that are JSON"),
    "a keyword that is no name": (note.s(**{"\0": 1}), "takes arguments that are JSON"),
}


def test_what_a_worker_could_not_call_is_refused_before_anything_is_written() -> None:
    for given, why in REFUSED.values():
        with pytest.raises(Refused, match=why):
            started(on_error=given)
    assert not Execution.objects.exists()
    assert not Callback.objects.exists()


@pytest.mark.parametrize("owner", ["callback", "handler"])
def test_a_webhook_gets_no_name_of_a_callback_or_handler_and_one_that_has_it_can_be_changed(owner: str) -> None:
    name, url = f"{owner} callbacks.note", "https://x.example/"
    with pytest.raises(Refused, match=f"a name that begins with '{owner} ' is that of a {owner}"):
        subscriptions.create(name, url)
    old = Subscription.objects.create(kind=Kind.WEBHOOK, name=name, url=url, secret="whsec_eA==")
    assert not subscriptions.change(old.pk, enabled=False).enabled
    with pytest.raises(Refused, match=f"a name that begins with '{owner} '"):
        subscriptions.change(old.pk, name=f"{owner} of another")
