"""Deletions, reports, refreshes, stops and the outbox take their locks in one order, so none of them deadlocks."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import psycopg
import pytest
from django.db.models.functions import Now

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, add_tasks, create
from harbor_refresh.executions.lifecycle.deletion import delete_ended, delete_final, delete_many_ended
from harbor_refresh.executions.lifecycle.quarantines import quarantine, release
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop_many, stop_task
from harbor_refresh.executions.models import Delivery, Execution, Gate, Link, StatusChange, Subscription, Task
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news.deliveries import claims, subscriptions
from harbor_refresh.executions.news.deliveries.claims import Result, claim, record
from harbor_refresh.executions.news.deliveries.deliverer import write_deliveries
from tests import servers
from tests.created import create_many
from tests.integration.concurrency import at_once, in_background, wait_until
from tests.integration.database_state import deadlocks_so_far, waiting_for_locks
from tests.integration.executions.deliveries.changed_executions import ended
from tests.integration.executions.table_order import rows_come_in_another_order
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database")

ROUNDS = 12


@pytest.fixture
def webhook() -> Subscription:
    return subscriptions.create("pager", "https://hooks.example.com/", statuses=())


@pytest.fixture
def other(database: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(servers.postgres.url_for(database)) as connection:
        yield connection
        connection.rollback()


def shuffled(ids: Sequence[int]) -> list[int]:
    return random.sample(ids, len(ids))


def families() -> list[list[Execution]]:
    """Two trees, level by level; half of the middle is open."""
    roots = create_many(NewExecution("TEST", tasks=[NewTask()] * 3) for _ in range(2))
    levels = [roots]
    for open_seconds in ((None, 60.0), (None,)):
        levels.append(
            create_many(
                NewExecution("TEST", parent=one.pk, open_seconds=seconds, tasks=[NewTask()] * 2)
                for one in levels[-1]
                for seconds in open_seconds
            )
        )
    return levels


def test_no_two_of_them_deadlock(webhook: Subscription) -> None:
    """All at once, on the same families in different orders. What comes too late is refused, and that is all
    that may be raised: a deadlock is an error of the database."""
    before = deadlocks_so_far()
    for _ in range(ROUNDS):
        levels = families()
        ids = [one.pk for level in levels for one in level]
        made = Task.objects.filter(execution_id__in=ids).exclude(pk__in=Link.objects.values("task_id"))
        tasks = list(made.exclude(pk__in=Gate.objects.values("task_id")).values_list("pk", flat=True))
        report([Report(pk, "Success") for pk in tasks])
        for level in reversed(levels):
            refresh([one.pk for one in level])
        quarantine(ids[::2], 1)

        def each(one: Callable[[int], object], chosen: Sequence[int] = ids) -> Callable[[], None]:
            def do() -> None:
                for pk in shuffled(chosen):
                    with suppress(Refused):
                        one(pk)

            return do

        def refreshed(chosen: Sequence[int] = ids) -> None:
            assert not refresh(shuffled(chosen)).failed

        at_once(
            each(delete_ended),
            lambda chosen=ids: delete_many_ended(shuffled(chosen)),
            lambda chosen=ids: delete_final(shuffled(chosen)),
            lambda chosen=ids: delete(shuffled(chosen)[:2]),
            lambda chosen=tasks: report([Report(pk, "Running", 1) for pk in shuffled(chosen)]),
            lambda chosen=tasks: report([Report(pk, "Success", 1) for pk in shuffled(chosen)]),
            refreshed,
            lambda chosen=ids: stop_many(shuffled(chosen)),
            each(stop_task, tasks),
            each(lambda pk: add_tasks(pk, [NewTask()])),
            each(lambda pk: create(NewExecution("TEST", parent=pk))),
            lambda chosen=ids: release(shuffled(chosen)),
            write_deliveries,
        )
        delete(ids)
        assert not Task.objects.filter(execution_id__in=ids).exists()
        assert not StatusChange.objects.filter(execution_id__in=ids).exists()
    assert deadlocks_so_far() == before


def test_an_addition_that_waits_for_its_execution_holds_nothing_of_it(
    other: "psycopg.Connection[tuple[object, ...]]",
) -> None:
    """A refresh has the row. If the addition had locked the key already, and asked for more now, a deletion could
    wait for the addition, and the addition for the deletion: that is a deadlock, though a rare one."""
    execution = create(NewExecution("TEST", tasks=[NewTask()]))
    lock = "SELECT FROM execution WHERE id = %s "
    other.execute(lock + "FOR NO KEY UPDATE", [execution.pk])
    with in_background(lambda: add_tasks(execution.pk, [NewTask()])) as added:
        wait_until(lambda: waiting_for_locks() == 1, "the addition waits for the refresh")
        other.execute(lock + "FOR UPDATE NOWAIT", [execution.pk])
        other.rollback()
        assert len(added()) == 1


def test_a_deletion_locks_the_changes_in_id_order_and_the_outbox_waits_for_none(
    database: str, webhook: Subscription, other: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    """The change of the newer execution was written first, and lies behind the other one on the disk."""
    older, newer = create_many(NewExecution("TEST", tasks=[NewTask()]) for _ in range(2))
    for one in (newer, older):
        report([Report(one.tasks.get().pk, "Success")])
        refresh([one.pk])
    first, last = StatusChange.objects.order_by("pk")
    assert (first.execution_id, last.execution_id) == (newer.pk, older.pk)
    rows_come_in_another_order(database, "execution_status_change", first.pk)
    other.execute("SELECT FROM execution_status_change WHERE id = %s FOR UPDATE", [last.pk])
    with in_background(lambda: delete_many_ended([older.pk, newer.pk])) as deleted:
        wait_until(lambda: waiting_for_locks() == 1, "the deletion waits for the last change")
        assert write_deliveries() == 0, "the outbox leaves the changes to the deletion"
        other.rollback()
        assert sorted(deleted()) == [older.pk, newer.pk]
    assert not Execution.objects.exists()
    assert not Delivery.objects.exists()


def test_a_subscription_is_deleted_while_results_of_its_deliveries_are_recorded(
    webhook: Subscription, other: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    """It fails, so its circuit moves. The deletion is first in the row for the subscription."""
    ended(3)
    write_deliveries()
    claimed = claim(5, 30.0)
    assert len(claimed) == 3
    other.execute("SELECT FROM execution_subscription FOR NO KEY UPDATE")
    failed = [Result(one, State.PENDING, "down", 5.0, answered=False) for one in claimed]
    with in_background(lambda: subscriptions.delete(webhook.pk)) as deleted:
        wait_until(lambda: waiting_for_locks() == 1, "the deletion waits for the subscription")
        with in_background(lambda: record(failed)) as recorded:
            wait_until(lambda: waiting_for_locks() == 2, "the results wait for the deletion")
            other.rollback()
            deleted()
            assert len(recorded()) in (0, 3)  # before the deletion, or after it
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("answered", [False, True])
def test_results_that_wait_for_their_subscription_hold_nothing_of_it(
    webhook: Subscription, other: "psycopg.Connection[tuple[object, ...]]", answered: bool
) -> None:
    """Another result is about to move its circuit. It is as with an addition that waits for its execution."""
    if answered:
        Subscription.objects.update(failures=1, failing_since=Now())
    ended(1)
    write_deliveries()
    [claimed] = claim(5, 30.0)
    result = Result(claimed, State.DELIVERED if answered else State.PENDING, answered=answered)
    other.execute("SELECT FROM execution_subscription FOR NO KEY UPDATE")
    with in_background(lambda: record([result])) as recorded:
        wait_until(lambda: waiting_for_locks() == 1, "the result waits for the other one")
        other.execute("SELECT FROM execution_subscription FOR UPDATE NOWAIT")
        other.rollback()
        assert len(recorded()) == 1
    webhook.refresh_from_db()
    assert webhook.failures == (0 if answered else 1)


def test_a_subscription_is_deleted_while_its_dead_letters_are_sent_again(
    database: str, webhook: Subscription, other: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    """The first delivery lies behind the others on the disk."""
    ended(3)
    write_deliveries()
    Delivery.objects.update(state="dead", next_at=None, ended_at="2026-01-01T00:00Z")
    first, *_, last = Delivery.objects.order_by("pk").values_list("pk", flat=True)
    rows_come_in_another_order(database, "execution_delivery", first)
    other.execute("SELECT FROM execution_delivery WHERE id = %s FOR UPDATE", [last])
    with in_background(lambda: subscriptions.delete(webhook.pk)) as deleted:
        wait_until(lambda: waiting_for_locks() == 1, "the deletion waits for the last delivery")
        assert claims.resend(Delivery.objects.filter(subscription=webhook)) <= 2, "it waits for neither"
        other.rollback()
        deleted()
    assert not Delivery.objects.exists()
