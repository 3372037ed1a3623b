"""Unique jobs: of two alike one is queued or running, whatever is started and tried again at the same moment."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from harbor_refresh.executions.errors import AlreadyUnderWay, Contended
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.jobs.starting.unique_keys import retry_on_conflict
from harbor_refresh.tasks.models import Job
from tests import servers
from tests.integration.concurrency import in_background, transaction_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.sample_jobs import Outbox, ends
from tests.integration.sample_executions import delete
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "outbox")

FAILED, AGAIN, NEW = ("Error", 0), ("Pending", 1), ("Pending", 0)


def started(argument: Any = "x") -> Execution:
    return start("SCAN", [[NewJob("a.job", [argument], is_unique=True)]])


def failed(argument: Any = "x") -> Execution:
    execution = started(argument)
    ends(execution, "Error")
    return execution


def fails(execution: Execution, *arguments: Any) -> None:
    found = execution.tasks.filter(job__args__0__in=arguments)
    report([Report(one.pk, "Error", one.status_revision) for one in found])


def jobs() -> list[tuple[tuple[str, int], bool]]:
    """Of each, the oldest first: its task's status and revision, and whether it holds the key."""
    found = Job.objects.order_by("pk").values_list("task__status", "task__status_revision", "holds_key")
    return [((status, revision), holds) for status, revision, holds in found]


def one_after_the_other(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    """The second waits for the first, which is about to commit. An error is a result as well."""

    def told() -> Any:
        try:
            return second()
        except AlreadyUnderWay:
            return AlreadyUnderWay

    with transaction_held_open(first) as commit, in_background(told) as finish:
        wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
        return commit(), finish()


def test_of_a_start_and_another_try_of_its_like_the_one_that_comes_first_stands(outbox: Outbox) -> None:
    execution = failed()
    outbox.take()
    assert one_after_the_other(lambda: retry_failed(execution.pk), started) == (1, AlreadyUnderWay)
    assert (jobs(), len(outbox.take())) == ([(AGAIN, True)], 1)
    ends(execution, "Error")
    _, again = one_after_the_other(started, lambda: retry_failed(execution.pk))
    assert (again, len(outbox.take())) == (0, 1)
    assert jobs() == [(("Error", 1), False), (NEW, True)]


def test_of_two_starts_the_second_starts_nothing_beside_the_first_that_took_the_key_of_what_ended() -> None:
    failed()
    _, second = one_after_the_other(started, started)
    assert second == AlreadyUnderWay
    assert jobs() == [(FAILED, False), (NEW, True)]


@pytest.mark.parametrize("holder_first", [True, False])
def test_of_two_executions_with_the_same_unique_job_one_is_tried_again(holder_first: bool) -> None:
    """The one whose job holds the key, or the one whose job has to take it from the other."""
    let_go, holds = failed().pk, failed().pk
    assert jobs() == [(FAILED, False), (FAILED, True)]
    first, second = (holds, let_go) if holder_first else (let_go, holds)
    assert one_after_the_other(lambda: retry_failed(first), lambda: retry_failed(second)) == (1, 0)
    again = [(FAILED, False), (AGAIN, True)]
    assert jobs() == (again if holder_first else again[::-1])


@pytest.mark.parametrize("is_a_start", [False, True])
def test_of_two_that_take_a_key_that_no_job_holds_one_has_it_and_neither_breaks(is_a_start: bool) -> None:
    """There is no row for the second to wait for: it meets the constraint, and looks again."""
    one, other, holder = failed().pk, failed().pk, failed().pk
    delete([holder])
    second = started if is_a_start else lambda: retry_failed(other)
    assert one_after_the_other(lambda: retry_failed(one), second) == (1, AlreadyUnderWay if is_a_start else 0)
    assert jobs() == [(AGAIN, True), (FAILED, False)]


def test_a_job_that_lost_its_key_wants_the_one_it_was_started_with() -> None:
    """PostgreSQL returns this number as another one, and the arguments of the row may change."""
    execution = failed(1e22)
    started(1e22)
    assert retry_failed(execution.pk) == 0
    assert jobs() == [(FAILED, False), (NEW, True)]


def test_tasks_are_locked_in_id_order_wherever_they_lie(database: str) -> None:
    arguments = [f"x{number}" for number in range(8)]
    execution = start("SCAN", [[NewJob("a.job", [one], is_unique=True)] for one in arguments])
    fails(execution, *arguments)
    lowest = execution.tasks.earliest("pk").pk
    Task.objects.filter(pk=lowest).update(update_time=Now())  # now it lies behind the others
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE", [lowest])
        with in_background(lambda: retry_failed(execution.pk)) as again:
            wait_until(lambda: waiting_for_locks() == 1, "it waits for the lowest")
            with transaction.atomic():
                free = Task.objects.exclude(pk=lowest).select_for_update(skip_locked=True)
                assert len(free) == len(arguments) - 1
            other.rollback()
            assert again() == len(arguments)


def test_a_conflict_that_never_ends_raises_after_three_tries_and_nothing_is_written() -> None:
    failed()
    started()
    tries = []

    def take_it_all_the_same() -> None:
        tries.append(Job.objects.filter(holds_key=False).update(holds_key=True))

    with pytest.raises(Contended, match="nothing was written"):
        retry_on_conflict(lambda: (tries.append(0), take_it_all_the_same()))
    assert tries == [0, 0, 0]
    assert jobs() == [(FAILED, False), (NEW, True)]


def test_what_another_constraint_refuses_is_no_conflict() -> None:
    started()
    tries = []
    with pytest.raises(IntegrityError, match="job_begins_as_often_as_it_may"):
        retry_on_conflict(lambda: (tries.append(0), Job.objects.update(max_attempts=0)))
    assert tries == [0]
