"""Handlers: registered by a decorator, called from the history, at least once and in order."""

from collections.abc import Callable

import pytest

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news import handlers as registry
from harbor_refresh.executions.news.deliveries.deliverer import (
    due_handlers,
    go_on_with_handlers,
    keep_rows,
    run_handler,
    write_deliveries,
)
from harbor_refresh.executions.news.handlers import Change, Failure, on_execution
from tests.integration.concurrency import at_once
from tests.integration.executions.deliveries.changed_executions import (
    end,
    ended,
    move_clock,
    rerun,
    states,
    tell,
)

pytestmark = pytest.mark.usefixtures("database")


def rows() -> dict[str, Subscription]:
    return {row.handler.rpartition(".")[2]: row for row in Subscription.objects.filter(kind="handler")}


def test_a_handler_gets_what_a_person_wants_to_know() -> None:
    told: list[Change] = []

    @on_execution("REPLICATION", status="Error")
    def alert(change: Change) -> None:
        told.append(change)

    keep_rows()
    executions = ended(1, vendor_id="disk/a")
    ended(1, vendor="SCAN_ALL", status="Error")
    end(executions, "Error", 2, "disk full")
    tell()
    execution = executions[0]
    execution.refresh_from_db()
    assert told == [
        Change(
            id=f"status_{execution.pk}_2_{rows()['alert'].pk}",
            execution_id=execution.pk,
            vendor_type="REPLICATION",
            revision=2,
            from_status="Success",
            to_status="Error",
            at=execution.history.get(revision=2).at,
            vendor_id=execution.vendor_id,
            vendor_key="disk/a",
            trigger="MANUAL",
            status_message="",
            extra_attrs={},
            start_time=execution.start_time,
            update_time=execution.update_time,
            end_time=execution.end_time,
            counts={"Error": 1},
            first_failures=(Failure(execution.tasks.get().pk, "", "disk full"),),
        )
    ]
    tell()
    assert len(told) == 1
    assert states() == {"delivered": 1}


def test_a_handler_without_words_is_told_of_every_final_status_in_order() -> None:
    told: list[tuple[int, int, str]] = []

    @on_execution()
    def note(change: Change) -> None:
        told.append((change.execution_id, change.revision, change.to_status))

    @on_execution(status=())
    def everything(change: Change) -> None:
        """Told of Running as well."""

    keep_rows()
    executions = ended(3)
    rerun(executions, 2, "Error")
    tell()
    for one in executions:
        assert [row[1:] for row in told if row[0] == one.pk] == [(1, "Success"), (3, "Error")]
    assert Delivery.objects.filter(subscription=rows()["everything"]).count() == 9


def test_a_handler_that_raises_is_called_again_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []
    broken: list[int] = []

    @on_execution()
    def careful(change: Change) -> None:
        calls.append(change.execution_id)
        if change.execution_id in broken:
            raise ValueError("no such channel")

    keep_rows()
    first, second = ended(2)
    broken.append(first.pk)
    tell()
    assert sorted(calls) == sorted([first.pk, second.pk])
    row = Delivery.objects.get(execution_id=first.pk)
    assert (row.state, row.attempts, row.last_error) == ("pending", 1, "ValueError: no such channel")
    assert "careful failed for status_" in caplog.text
    broken.clear()
    move_clock(minutes=1)
    tell()
    assert calls[2:] == [first.pk]
    assert states() == {"delivered": 2}


def test_rows_follow_the_code_and_an_administrators_switch_stays(caplog: pytest.LogCaptureFixture) -> None:
    @on_execution("A")
    def one(change: Change) -> None: ...

    keep_rows()
    Subscription.objects.update(enabled=False)
    registry._registered.clear()
    keep_rows()
    assert rows()["one"].missing_since is not None
    assert "has no code in this worker" in caplog.text
    on_execution("B", status="Error", trigger="SCHEDULE")(one)
    keep_rows()
    row = rows()["one"]
    assert (row.enabled, row.missing_since, row.vendor_types, row.statuses, row.triggers) == (
        False,
        None,
        ["B"],
        ["Error"],
        ["SCHEDULE"],
    )


def test_a_handler_without_code_is_told_what_had_been_listed_when_the_code_is_back() -> None:
    told: list[int] = []

    @on_execution()
    def one(change: Change) -> None:
        told.append(change.execution_id)

    keep_rows()
    before = ended(1)
    write_deliveries()
    registry._registered.clear()
    keep_rows()
    ended(1)
    tell()
    assert told == []
    on_execution()(one)
    keep_rows()
    tell()
    assert told == [before[0].pk]


def test_a_handler_that_a_process_with_older_code_has_let_rest_goes_on_with_the_next_run_of_a_newer_one() -> None:
    @on_execution()
    def one(change: Change) -> None: ...

    keep_rows()
    newer = dict(registry._registered)
    registry._registered.clear()
    keep_rows()
    registry._registered.update(newer)
    go_on_with_handlers()
    assert rows()["one"].missing_since is None


def test_workers_that_start_at_once_make_one_row_of_each_handler() -> None:
    @on_execution()
    def one(change: Change) -> None: ...

    at_once(*[keep_rows] * 4)
    assert list(rows()) == ["one"]


def test_two_runs_of_a_handler_at_once_call_it_once_for_each_change() -> None:
    told: list[int] = []

    @on_execution()
    def one(change: Change) -> None:
        told.append(change.execution_id)

    keep_rows()
    executions = ended(60)
    write_deliveries()
    (subscription_id,) = due_handlers()
    assert due_handlers() == []  # it is asked for once
    at_once(*[lambda: run_handler(subscription_id)] * 3)
    assert sorted(told) == [execution.pk for execution in executions]


def test_a_handler_that_is_registered_twice_is_refused() -> None:
    def plain(change: Change) -> None: ...

    on_execution("A")(plain)
    on_execution("A")(plain)  # a module that is imported again
    with pytest.raises(Refused, match="is registered twice"):
        on_execution("B")(plain)
    assert list(registry.handlers()) == [f"{plain.__module__}.{plain.__qualname__}"]


def test_a_coroutine_is_refused() -> None:
    async def later(change: Change) -> None: ...

    with pytest.raises(Refused, match="nothing would await"):
        on_execution()(later)


@pytest.mark.parametrize(
    "wrong", [lambda: on_execution(print), lambda: on_execution("A", status="Succeed")], ids=["bare", "status"]
)
def test_a_decorator_that_cannot_be_meant_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(Refused):
        wrong()
