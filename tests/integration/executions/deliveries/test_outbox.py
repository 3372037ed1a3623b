"""The outbox: which changes become deliveries, in which order, and what it costs if nothing is subscribed."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import finish
from harbor_refresh.executions.models import Delivery, StatusChange, Subscription, Task
from harbor_refresh.executions.news.after_commit import changes_written
from harbor_refresh.executions.news.deliveries import deliverer
from harbor_refresh.executions.news.deliveries.deliverer import write_deliveries
from harbor_refresh.executions.status import Status
from tests.integration.concurrency import at_once, in_background, statement_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.executions.deliveries.changed_executions import end, ended, rerun
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database")

URL = "http://127.0.0.1:9/"
Subscribe = Callable[..., Subscription]


def listed() -> list[tuple[int, int, int]]:
    """The deliveries in the order in which they were written."""
    return list(Delivery.objects.order_by("pk").values_list("subscription_id", "execution_id", "revision"))


def test_without_a_subscription_changes_are_told_when_they_are_written() -> None:
    ended(3)
    finish(create(NewExecution("SCAN_ALL")).pk, Status.SUCCESS)
    assert list(StatusChange.objects.values_list("told", flat=True)) == [True] * 4
    assert write_deliveries() == 0


def test_a_refresh_with_nothing_subscribed_has_as_many_statements_as_ever() -> None:
    executions = [create(NewExecution("SCAN_ALL", tasks=[NewTask()])).pk for _ in range(3)]
    report([Report(pk, "Success") for pk in Task.objects.values_list("pk", flat=True)])
    with CaptureQueriesContext(connection) as captured:
        assert refresh(executions).changed == 3
    statements = [one["sql"] for one in captured if not one["sql"].startswith(("BEGIN", "COMMIT"))]
    assert len(statements) == 2, "one locks, the other refreshes"


def test_a_disabled_subscription_costs_as_much_as_none(subscribed: Subscribe) -> None:
    subscribed(URL, enabled=False)
    ended(2)
    assert not StatusChange.objects.filter(told=False).exists()


def test_each_writer_leaves_its_change_in_the_outbox_and_says_so(subscribed: Subscribe) -> None:
    told: list[str] = []

    def listen(**_: object) -> None:
        told.append("written")

    changes_written.connect(listen)
    subscription = subscribed(URL)
    (refreshed,) = ended(1)
    finished = create(NewExecution("SCAN_ALL"))
    finish(finished.pk, Status.SUCCESS)
    refresh([refreshed.pk])  # nothing differs, so nothing is to be told
    changes_written.disconnect(listen)
    assert told == ["written"] * 2
    assert write_deliveries() == 2
    assert listed() == [(subscription.pk, refreshed.pk, 1), (subscription.pk, finished.pk, 1)]
    assert write_deliveries() == 0
    assert not StatusChange.objects.filter(told=False).exists()


def test_a_change_of_a_writer_that_does_not_know_the_column_is_told(subscribed: Subscribe) -> None:
    subscribed(URL)
    (execution,) = ended(1)
    write_deliveries()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at) "
            "VALUES (%s, 2, 'Success', 'Error', now())",
            [execution.pk],
        )
    assert write_deliveries() == 1
    assert Delivery.objects.filter(revision=2).count() == 1


def test_the_changes_of_an_execution_are_listed_in_order_whatever_the_size_of_a_batch(
    subscribed: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "BATCH", 4)
    one, other = subscribed(URL, statuses=()), subscribed(URL, statuses=())
    executions = ended(3)
    for revision in range(2, 5):
        rerun(executions, revision)
    assert write_deliveries() == 3 * 7
    for subscription in (one, other):
        for execution in executions:
            revisions = [row[2] for row in listed() if row[:2] == (subscription.pk, execution.pk)]
            assert revisions == [1, 2, 3, 4, 5, 6, 7]


def test_writers_at_once_list_each_change_once_and_in_order(
    subscribed: Subscribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "BATCH", 10)
    subscription = subscribed(URL, statuses=())
    executions = ended(60)
    rerun(executions, 2)
    at_once(*[write_deliveries] * 4)
    write_deliveries()
    assert sorted(listed()) == [
        (subscription.pk, one.pk, revision) for one in executions for revision in (1, 2, 3)
    ]
    assert [one[2] for one in sorted(listed(), key=lambda one: one[1])] == [1, 2, 3] * 60


def test_an_outbox_that_is_locked_is_left_and_not_waited_for(subscribed: Subscribe) -> None:
    subscribed(URL)
    ended(2)
    with statement_held_open("SELECT FROM execution_status_change ORDER BY id DESC LIMIT 1 FOR UPDATE"):
        assert write_deliveries() == 0
    assert write_deliveries() == 2


def test_a_subscription_that_is_deleted_while_its_deliveries_are_written_holds_up_no_other(
    database: str, subscribed: Subscribe
) -> None:
    subscribed(URL)
    gone = subscribed(URL, name="gone")
    [execution] = ended(1)
    with (
        statement_held_open("DELETE FROM execution_subscription WHERE id = %s", [gone.pk]) as other,
        in_background(write_deliveries) as written,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the deliveries wait for the deletion")
        other.commit()
        assert written() == 0
    assert write_deliveries() == 1
    assert [one[1] for one in listed()] == [execution.pk]


def test_a_change_of_a_deleted_execution_is_not_told(subscribed: Subscribe) -> None:
    subscribed(URL)
    gone, kept = ended(2)
    delete([gone.pk])
    write_deliveries()
    assert [row[1] for row in listed()] == [kept.pk]


def test_a_subscription_begins_with_what_changes_after_it_was_made(subscribed: Subscribe) -> None:
    (execution,) = ended(1)
    subscribed(URL)
    end([execution], "Error", 2)
    write_deliveries()
    assert [row[1:] for row in listed()] == [(execution.pk, 2)]


def test_a_filter_chooses_as_its_words_say(subscribed: Subscribe) -> None:
    """Without a word of its kind every change is chosen."""
    wishes = {
        subscribed(URL, vendor_types=["A", "B"], statuses=["Error"], triggers=["MANUAL"]): "AE BE",
        subscribed(URL, vendor_types=["C"], statuses=["Error", "Success"]): "CS",
        subscribed(URL, statuses=[], triggers=["SCHEDULE"]): "AES",
        subscribed(URL, statuses=[]): "AE BE CS AS AES",
    }
    happened = {
        "AE": ended(vendor="A", status="Error"),
        "BE": ended(vendor="B", status="Error"),
        "CS": ended(vendor="C"),
        "AS": ended(vendor="A"),
        "AES": ended(vendor="A", status="Error", trigger="SCHEDULE"),
    }
    write_deliveries()
    assert {row[:2] for row in listed()} == {
        (subscription.pk, happened[name][0].pk) for subscription, names in wishes.items() for name in names.split()
    }
