"""gates: an open execution does not end before it is closed, and nothing is added after that."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from harbor_refresh.executions.errors import AlreadyFinal, ExecutionClosed, NoSuchExecution, NotFinal, Refused
from harbor_refresh.executions.lifecycle.creation import (
    MAX_OPEN_SECONDS,
    NewExecution,
    NewTask,
    add_tasks,
    create,
)
from harbor_refresh.executions.lifecycle.deletion import delete_ended
from harbor_refresh.executions.lifecycle.gates import OVERDUE, close, close_overdue, pass_stopped
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Addition, Execution, Gate, Task
from harbor_refresh.executions.news.after_commit import Member
from harbor_refresh.executions.news.signals import closed_overdue
from harbor_refresh.executions.queries.progress import Progress, progress
from tests.integration.concurrency import (
    DEADLINE_SECONDS,
    at_once,
    in_background,
    transaction_held_open,
    wait_until,
)
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.sample_executions import delete, status_of

pytestmark = pytest.mark.usefixtures("database")


def opened(tasks: int = 0, seconds: float = 3600) -> Execution:
    return create(NewExecution("TEST", tasks=[NewTask()] * tasks, open_seconds=seconds))


def gate_of(execution: Execution) -> Task:
    return Task.objects.get(pk=Gate.objects.get(pk=execution.pk).task_id)


def end_tasks(execution: Execution, status: str = "Success") -> None:
    """All that are there, but the gate."""
    gate = gate_of(execution).pk
    report([Report(pk, status) for pk in execution.tasks.exclude(pk=gate).values_list("pk", flat=True)])


def overdue(execution: Execution) -> None:
    assert Gate.objects.filter(pk=execution.pk).update(closes_at=timezone.now() - timedelta(seconds=1)) == 1


def refreshed(execution: Execution) -> str:
    refresh([execution.pk])
    return status_of(execution)


def counts(execution: Execution) -> dict[str, int]:
    return progress(execution.pk).counts


@pytest.mark.parametrize("status", ["Success", "Error", "Stopped"])
def test_an_open_execution_is_running_whatever_its_tasks_say_until_it_is_closed(
    status: str, changed: list[Member]
) -> None:
    execution = opened(tasks=2)
    end_tasks(execution, status)
    assert refreshed(execution) == "Running"
    changed.clear()
    assert close(execution.pk)
    assert changed == [(execution.pk, "TEST")]
    assert refreshed(execution) == status
    assert (gate_of(execution).status, gate_of(execution).status_message) == ("Success", "closed")
    before = (rows(Execution), rows(Task), rows(Gate))
    assert not close(execution.pk)
    assert (rows(Execution), rows(Task), rows(Gate)) == before


def test_a_closed_execution_ends_with_its_last_task_and_takes_no_more() -> None:
    execution = opened()
    (task,) = add_tasks(execution.pk, [NewTask()])
    close(execution.pk)
    assert refreshed(execution) == "Running"
    with pytest.raises(ExecutionClosed, match=f"execution {execution.pk} is closed"):
        add_tasks(execution.pk, [NewTask()])
    report([Report(task, "Success")])
    assert refreshed(execution) == "Success"
    with pytest.raises(AlreadyFinal):
        add_tasks(execution.pk, [NewTask()])
    assert execution.tasks.count() == 2


def test_the_gate_is_no_task_of_the_progress() -> None:
    execution = opened()
    assert progress(execution.pk) == Progress("Running", {}, 0, 0, None, is_open=True)
    add_tasks(execution.pk, [NewTask(), NewTask()])
    assert (counts(execution), progress(execution.pk).total, progress(execution.pk).is_open) == (
        {"Pending": 2},
        2,
        True,
    )
    end_tasks(execution)
    assert counts(execution) == {"Success": 2}
    close(execution.pk)
    assert (counts(execution), progress(execution.pk).is_open) == ({"Success": 2}, False)
    stopped = opened(tasks=1)
    stop(stopped.pk)
    assert (counts(stopped), progress(stopped.pk).share) == ({"Stopped": 1}, 1.0)


def test_an_execution_that_is_not_closed_in_time_ends_as_error_and_says_why(changed: list[Member]) -> None:
    late, in_time, closed = opened(tasks=1), opened(tasks=1), opened(tasks=1)
    close(closed.pk)
    overdue(late)
    told: list[Any] = []
    closed_overdue.connect(listen := lambda execution_ids, **_: told.append(execution_ids))
    changed.clear()
    assert close_overdue() == 1
    assert (told, changed) == ([[late.pk]], [(late.pk, "TEST")])
    closed_overdue.disconnect(listen)
    end_tasks(late)
    end_tasks(in_time)
    assert [refreshed(one) for one in (late, in_time)] == ["Error", "Running"]
    assert gate_of(late).status_message == OVERDUE
    assert counts(late) == {"Success": 1}
    assert close_overdue() == 0
    assert not close(late.pk)
    with pytest.raises(ExecutionClosed):
        add_tasks(late.pk, [NewTask()])


def test_nothing_is_added_after_the_time_limit_although_no_pass_has_come_yet() -> None:
    execution = opened()
    overdue(execution)
    with pytest.raises(ExecutionClosed):
        add_tasks(execution.pk, [NewTask()])
    assert close(execution.pk), "its producer is late, and says that all was added"
    assert (refreshed(execution), close_overdue()) == ("Success", 0)


def test_a_pass_waits_for_no_addition_and_closes_all_others(database: str) -> None:
    held, *others = [opened() for _ in range(4)]
    with transaction_held_open(lambda: add_tasks(held.pk, [NewTask()])) as commit:
        for one in (held, *others):
            overdue(one)
        assert close_overdue() == 3
        commit()
    assert close_overdue() == 1
    assert counts(held) == {"Pending": 1}


def test_a_stop_ends_the_gate_and_a_resumption_opens_it_no_more() -> None:
    execution = opened(tasks=1)
    assert stop(execution.pk) == 2
    assert status_of(execution) == "Stopped"
    with pytest.raises(ExecutionClosed):
        add_tasks(execution.pk, [NewTask()])
    assert not close(execution.pk)
    overdue(execution)
    assert close_overdue() == 0
    for _ in range(2):
        with transaction.atomic():
            pass_stopped([execution.pk])
        assert (gate_of(execution).status, gate_of(execution).status_revision) == ("Success", 1)
    with pytest.raises(ExecutionClosed):
        add_tasks(execution.pk, [NewTask()])


ENDS: dict[str, Callable[[int], object]] = {"close": close, "stop": stop}


def added_or_refused(execution: Execution) -> int | None:
    with suppress(ExecutionClosed):
        return len(add_tasks(execution.pk, [NewTask()]))
    return None


def test_additions_wait_neither_for_each_other_nor_for_a_refresh() -> None:
    execution = opened()
    with transaction_held_open(lambda: add_tasks(execution.pk, [NewTask()])) as commit:
        with transaction_held_open(lambda: refresh([execution.pk])) as commit_too:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '2s'")
            assert len(add_tasks(execution.pk, [NewTask()], once="b")) == 1
            commit_too()
        commit()
    assert counts(execution) == {"Pending": 2}


@pytest.mark.parametrize("end", list(ENDS))
def test_what_ends_the_gate_waits_for_additions_that_have_begun_and_is_not_overtaken_by_later_ones(
    end: str,
) -> None:
    """A stop stops what those that have begun have added."""
    execution = opened()
    with (
        transaction_held_open(lambda: add_tasks(execution.pk, [NewTask()])) as commit,
        in_background(lambda: ENDS[end](execution.pk)) as ended,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the end waits for the first addition")
        with in_background(lambda: added_or_refused(execution)) as added:
            wait_until(lambda: waiting_for_locks() == 2, "the second addition waits for the end")
            commit()
            assert (added(), bool(ended())) == (None, True)
    assert counts(execution) == ({"Pending": 1} if end == "close" else {"Stopped": 1})
    assert refreshed(execution) == ("Running" if end == "close" else "Stopped")


@pytest.mark.parametrize("end", list(ENDS))
def test_a_transaction_adds_again_although_the_end_of_the_gate_waits_for_it(end: str) -> None:
    execution = opened()
    begun, go_on = threading.Event(), threading.Event()

    def add_twice() -> int:
        with transaction.atomic():
            first = add_tasks(execution.pk, [NewTask()])
            begun.set()
            assert go_on.wait(DEADLINE_SECONDS)
            return len(first + add_tasks(execution.pk, [NewTask()]))

    with in_background(add_twice) as added:
        assert begun.wait(DEADLINE_SECONDS)
        with in_background(lambda: ENDS[end](execution.pk)) as ended:
            wait_until(lambda: waiting_for_locks() == 1, "the end waits for it")
            go_on.set()
            assert (added(), bool(ended())) == (2, True)
    assert sum(counts(execution).values()) == 2


def test_an_addition_with_a_key_is_made_once() -> None:
    execution, other = opened(), opened()
    assert len(add_tasks(execution.pk, [NewTask(), NewTask()], once="page 1")) == 2
    assert add_tasks(execution.pk, [NewTask()], once="page 1") == []
    assert len(add_tasks(execution.pk, [NewTask()], once="page 2")) == 1
    assert len(add_tasks(other.pk, [NewTask()], once="page 1")) == 1
    assert counts(execution) == {"Pending": 3}
    close(execution.pk)
    assert add_tasks(execution.pk, [NewTask()], once="page 1") == [], "also after the end"
    with pytest.raises(ExecutionClosed):
        add_tasks(execution.pk, [NewTask()], once="page 3")
    assert set(Addition.objects.values_list("execution_id", "key")) == {
        (execution.pk, "page 1"),
        (execution.pk, "page 2"),
        (other.pk, "page 1"),
    }


def test_of_additions_with_one_key_at_once_one_is_made() -> None:
    execution = opened()
    assert sum(at_once(*[lambda: len(add_tasks(execution.pk, [NewTask()], once="a"))] * 8)) == 1


def test_tasks_are_added_to_an_execution_that_was_not_opened_until_it_ends() -> None:
    execution = create(NewExecution("TEST", tasks=[NewTask()]))
    assert len(add_tasks(execution.pk, [NewTask()], once="a")) == 1
    assert add_tasks(execution.pk, [NewTask()], once="a") == []
    assert not close(execution.pk)
    report([Report(pk, "Success") for pk in execution.tasks.values_list("pk", flat=True)])
    assert refreshed(execution) == "Success"
    assert add_tasks(execution.pk, [NewTask()], once="a") == []
    with pytest.raises(AlreadyFinal, match="is Success already"):
        add_tasks(execution.pk, [NewTask()])


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), MAX_OPEN_SECONDS + 1, "5", True])
def test_a_time_limit_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(Refused, match="the time limit of an open execution takes seconds above 0"):
        opened(seconds=seconds)
    assert rows(Execution) == {}


@pytest.mark.parametrize("key", ["k" * 256, "a\x00b", None, 5])
def test_a_key_that_cannot_be_stored_is_refused(key: Any) -> None:
    execution = opened()
    with pytest.raises(Refused, match="once takes text of at most 255 characters"):
        add_tasks(execution.pk, [NewTask()], once=key)
    assert counts(execution) == {}


def test_the_verbs_of_an_execution_that_does_not_exist_say_so() -> None:
    for verb in (close, lambda pk: add_tasks(pk, [NewTask()])):
        with pytest.raises(NoSuchExecution):
            verb(7_777)


def test_an_open_execution_is_not_deleted_as_one_that_has_ended_and_goes_with_its_gate_and_its_keys() -> None:
    execution = opened()
    add_tasks(execution.pk, [NewTask()], once="a")
    with pytest.raises(NotFinal):
        delete_ended(execution.pk)
    assert delete([execution.pk]) == 1
    assert (rows(Execution), rows(Task), rows(Gate), rows(Addition)) == ({}, {}, {}, {})
