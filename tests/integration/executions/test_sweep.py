"""The sweep: locks, traffic, a death in the middle, two at once; and its other steps."""

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.lifecycle import housekeeping, retention
from harbor_refresh.executions.lifecycle import sweep as sweeping
from harbor_refresh.executions.lifecycle.deletion import delete_final
from harbor_refresh.executions.lifecycle.housekeeping import Chore
from harbor_refresh.executions.lifecycle.lease import Lease
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.retention import Retention
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.sweep import sweep
from harbor_refresh.executions.models import (
    DeletedTask,
    Delivery,
    Execution,
    IdempotencyKey,
    StatusChange,
    Subscription,
    Task,
)
from harbor_refresh.executions.models import Lease as LeaseRow
from tests import servers
from tests.integration.concurrency import Pause, in_background, statement_held_open
from tests.integration.executions.old_executions import ended
from tests.integration.sample_executions import made
from tests.pages import ROOT

pytestmark = pytest.mark.usefixtures("database")

OLD = timedelta(days=8)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PAGE", 10)
    monkeypatch.setattr(retention, "BATCH", 5)


@pytest.fixture
def no_lock_is_waited_for(database: str) -> Iterator[None]:
    """A statement of this connection that waits for a lock fails."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '1ms'")
        yield
        cursor.execute("RESET lock_timeout")


def ids() -> set[int]:
    return set(Execution.objects.values_list("pk", flat=True))


# locks and traffic


@pytest.mark.usefixtures("no_lock_is_waited_for")
def test_locked_rows_are_left_for_the_next_sweep_and_not_waited_for(database: str) -> None:
    by_refresh, by_report, free, newest = ended(4, tasks=("Success", "Success"))
    task = Task.objects.filter(execution_id=by_report).order_by("pk").last()
    assert task
    with statement_held_open("SELECT FROM execution WHERE id = %s FOR NO KEY UPDATE", [by_refresh]) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR NO KEY UPDATE", [task.pk])
        outcome = sweep()
        assert (outcome.executions, outcome.tasks) == (1, 2)
        assert ids() == {by_refresh, by_report, newest}
        assert Task.objects.count() == 6, "an execution is deleted with all its tasks, or not at all"
    assert sweep().executions == 2
    assert ids() == {newest}
    assert free not in ids()


def test_an_execution_that_is_opened_after_it_was_found_is_kept() -> None:
    """Its task runs again, or it gets another one: what was found is decided once more under the locks. A status
    that is not refreshed yet has not been told."""
    reopened, grown, drifted, _ = ended(4)
    page = retention.find(Retention.of_settings(), retention.Position())
    assert list(page.found) == [reopened, grown, drifted]
    task = Task.objects.get(execution_id=reopened)
    report([Report(task.pk, "Running", 1)])
    refresh([reopened])
    report([Report(task.pk, "Success", 1)])
    Task.objects.create(execution_id=grown, vendor_type="IMAGE_SCAN")
    report([Report(Task.objects.get(execution_id=drifted).pk, "Running", 1)])
    assert delete_final(list(page.found)) == (0, 0)
    assert len(ids()) == 4


def test_an_execution_stays_until_its_changes_were_told() -> None:
    """A change that was written after the execution was found counts as well."""
    untold, told_late, told, _ = ended(4)
    StatusChange.objects.filter(execution_id=untold).update(told=False)
    page = retention.find(Retention.of_settings(), retention.Position())
    assert list(page.found) == [told_late, told]
    StatusChange.objects.filter(execution_id=told_late).update(told=False)
    assert delete_final(list(page.found)) == (1, 1)
    StatusChange.objects.update(told=True)
    assert sweep().executions == 2


# one at a time


def test_a_second_sweep_says_that_one_is_running_and_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="harbor_refresh")
    ended(3)
    with Pause("swept") as pause, in_background(sweep) as first:
        pause.wait_until_reached()
        before = ids()
        second = sweep()
        assert second.held is not None
        assert (second.executions, ids()) == (0, before)
        pause.go_on.set()
        assert first().executions == 2
    row = LeaseRow.objects.get()
    assert (row.name, row.holder, row.held_until) == ("sweep", None, None)
    assert f"Sweep is running already, left alone: {second.held.holder} has the lease until" in caplog.text
    assert "Sweep deleted 2 executions, 2 tasks and 0 old rows" in caplog.text


def test_a_sweep_whose_lease_was_taken_over_deletes_nothing_more(
    small_pages: None, caplog: pytest.LogCaptureFixture
) -> None:
    ended(21)
    with Pause("swept") as pause, in_background(sweep) as first:
        pause.wait_until_reached()
        LeaseRow.objects.update(held_until=LONG_AGO)
        other = Lease("sweep")
        assert other.take() is None
        pause.go_on.set()
        outcome = first()
    assert (outcome.lease_lost, outcome.executions) == (True, 5)
    assert len(ids()) == 16
    assert LeaseRow.objects.get().holder == other.holder, "the lease of the other is not released"
    assert "Sweep lost its lease to another sweep" in caplog.text


KILLED_AT_THE_THIRD_BATCH = """
import os, signal, django
django.setup()
from harbor_refresh.executions.lifecycle import crash_points, retention
from harbor_refresh.executions.lifecycle.sweep import sweep
retention.PAGE, retention.BATCH = 100, 50
seen = []
def die(point, ids):
    seen.append(point)
    if seen.count("swept") == 3:
        os.kill(os.getpid(), signal.SIGKILL)
crash_points.handlers.append(die)
sweep()
"""


def test_a_sweep_that_was_killed_half_way_is_finished_by_the_next_one(database: str) -> None:
    ended(400)
    process = subprocess.run(
        [sys.executable, "-c", KILLED_AT_THE_THIRD_BATCH],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "DATABASE_URL": servers.postgres.url_for(database),
        },
        timeout=300,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    assert len(ids()) == 251, "the batches of 50, 49 (the newest of the first page is kept) and 50 are committed"
    assert sweep().held is not None, "its lease is in force for some seconds"
    LeaseRow.objects.update(held_until=LONG_AGO)
    assert sweep().executions == 250
    assert len(ids()) == 1
    assert Task.objects.count() == StatusChange.objects.count() == 1


def test_a_place_of_a_step_that_does_not_exist_begins_at_the_first() -> None:
    ended(3)
    assert sweep("of another release", (1, "x")).executions == 2


# old status changes


def with_history(length: int, *, age: timedelta) -> int:
    """An execution of that many revisions, the last of which is final; a status change for each, so old."""
    (execution,) = ended(vendor="X", age=age)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM execution_status_change WHERE execution_id = %s", [execution])
        cursor.execute(
            "INSERT INTO execution_status_change (execution_id, revision, from_status, to_status, at, told) "
            "SELECT %s, n, 'Success', 'Success', now() - %s, TRUE FROM generate_series(1, %s) AS n",
            [execution, age, length],
        )
        cursor.execute("UPDATE execution SET revision = %s WHERE id = %s", [length, execution])
    return execution


def revisions(execution: int) -> list[int]:
    return list(
        StatusChange.objects.filter(execution_id=execution).order_by("revision").values_list("revision", flat=True)
    )


@pytest.fixture
def short_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "HISTORY_KEPT", 5)
    monkeypatch.setattr(housekeeping, "BATCH", 4)
    monkeypatch.setattr(housekeeping, "HISTORY_PAGE", 3)


@pytest.mark.usefixtures("short_histories")
def test_only_the_old_beginning_of_a_long_history_is_deleted() -> None:
    long = with_history(20, age=timedelta(days=31))
    short = with_history(5, age=timedelta(days=31))
    young = with_history(20, age=timedelta(days=29))
    mixed = with_history(20, age=timedelta(days=31))
    StatusChange.objects.filter(execution_id=mixed, revision__in=(7, 9)).update(
        at=StatusChange.objects.filter(execution_id=young).latest("pk").at
    )
    assert sweep().forgotten == {"history": 15 + 6}
    assert revisions(long) == [16, 17, 18, 19, 20]
    assert revisions(short) == [1, 2, 3, 4, 5]
    assert revisions(young) == list(range(1, 21))
    assert revisions(mixed) == list(range(7, 21)), "a history has no hole"
    assert sweep().forgotten == {}


@pytest.mark.usefixtures("short_histories")
def test_a_history_goes_on_after_it_was_shortened() -> None:
    execution = with_history(8, age=timedelta(days=31))
    task = Task.objects.get(execution_id=execution)
    sweep()
    assert revisions(execution) == [4, 5, 6, 7, 8]
    report([Report(task.pk, "Running", 1)])
    refresh([execution])
    StatusChange.objects.update(at=LONG_AGO)
    assert sweep().forgotten == {"history": 1}
    assert revisions(execution) == [5, 6, 7, 8, 9]


@pytest.mark.usefixtures("short_histories")
@pytest.mark.parametrize("page", [3, 100])
def test_many_long_histories_are_shortened_page_by_page(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "HISTORY_PAGE", page)
    monkeypatch.setattr(housekeeping, "AT_ONCE", 4)
    long = [with_history(7, age=timedelta(days=31)) for _ in range(5)]
    assert sweep().forgotten == {"history": 2 * 5}
    assert [revisions(pk) for pk in long] == [[3, 4, 5, 6, 7]] * 5


@pytest.mark.usefixtures("short_histories")
def test_no_long_history_is_read_whole() -> None:
    with_history(2_000, age=timedelta(days=31))
    with CaptureQueriesContext(connection) as asked, transaction.atomic():
        housekeeping.shorten_histories(timedelta(days=30), 0)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE execution_status_change")
        for query in (one["sql"] for one in asked.captured_queries if one["sql"].startswith("SELECT")):
            cursor.execute(f"EXPLAIN ANALYZE {query}")
            assert max(map(int, re.findall(r"actual \S+ rows=(\d+)", str(cursor.fetchall())))) <= 6, query


@pytest.mark.usefixtures("short_histories")
def test_no_history_is_shortened_if_that_is_switched_off(settings: Settings) -> None:
    settings.REFRESH_HISTORY_DAYS = 0
    execution = with_history(20, age=timedelta(days=3000))
    assert sweep().forgotten == {}
    assert len(revisions(execution)) == 20


# other tables


def test_idempotency_keys_are_forgotten_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    for number in range(7):
        IdempotencyKey.objects.create(caller="c", key=str(number), request=b"x")
    IdempotencyKey.objects.exclude(key="6").update(at=datetime.now(UTC) - timedelta(hours=25))
    with statement_held_open("SELECT FROM execution_idempotency_key WHERE key = '0' FOR UPDATE"):
        assert sweep().forgotten == {"idempotency keys": 5}
    assert sorted(IdempotencyKey.objects.values_list("key", flat=True)) == ["0", "6"]


def test_each_table_is_swept_of_its_old_rows_only() -> None:
    """What has ended and what is old goes; what has not ended stays, however old it is."""
    long_ago = datetime.now(UTC) - timedelta(days=31)
    webhook = Subscription.objects.create(name="s", url="https://example.com", secret="whsec_x")
    for revision, ended_at in enumerate((None, long_ago, datetime.now(UTC))):
        state = {"state": "delivered", "next_at": None} if ended_at else {}
        Delivery.objects.create(
            subscription=webhook,
            execution_id=1,
            revision=revision,
            changed_at=long_ago,
            created_at=long_ago,
            ended_at=ended_at,
            **state,
        )
    for task, at in enumerate((long_ago, datetime.now(UTC))):
        DeletedTask.objects.create(task_id=task, job_id="", at=at)
    assert sweep().forgotten == {"tombstones of tasks": 1, "ended deliveries": 1}
    assert sorted(Delivery.objects.values_list("revision", flat=True)) == [0, 2]


def test_a_sweep_that_finds_nothing_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="harbor_refresh")
    made(2)
    outcome = sweep()
    assert outcome.executions == 0
    assert caplog.text == ""


# what cannot be deleted


@pytest.fixture
def exports(database: str) -> Iterator[Callable[..., None]]:
    """A table of the project with the foreign keys that Django makes; the function has a row name these."""
    with connection.cursor() as cursor:
        for name, table in (("execution", "execution"), ("task", "task")):
            cursor.execute(
                f'CREATE TABLE "Shop export of {name}s" (id serial, "of" bigint REFERENCES {table} (id) '
                "DEFERRABLE INITIALLY DEFERRED)"
            )

    def refer(to: str, *ids: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f'INSERT INTO "Shop export of {to}s" ("of") SELECT unnest(%s::bigint[])', [list(ids)])

    yield refer
    with connection.cursor() as cursor:
        cursor.execute('DROP TABLE "Shop export of executions", "Shop export of tasks"')


@pytest.fixture
def undeletable(database: str) -> Iterator[Callable[..., None]]:
    """The function has the database refuse to delete these executions, for a reason that cannot be foreseen."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE held (id bigint)")
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF EXISTS (SELECT FROM held WHERE id = OLD.id) THEN RAISE 'execution % is held', OLD.id; END IF; "
            "RETURN NULL; END $$"
        )
        cursor.execute(
            "CREATE CONSTRAINT TRIGGER refuses AFTER DELETE ON execution DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )

    def hold(ids: Sequence[int]) -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO held SELECT unnest(%s::bigint[])", [list(ids)])

    yield hold
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER refuses ON execution; DROP FUNCTION refuse; DROP TABLE held")


def test_executions_that_rows_of_the_project_name_are_passed_and_told_once_and_the_sweep_goes_on(
    exports: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    first, _, by_task, newest = ended(4, tasks=("Success", "Success"))
    other = ended(3, vendor="SBOM")
    exports("execution", first, newest, *other)
    exports("task", *Task.objects.filter(execution_id=by_task).values_list("pk", flat=True))
    DeletedTask.objects.create(task_id=7, job_id="", at=LONG_AGO)
    outcome = sweep()
    assert (outcome.executions, outcome.passed) == (1, 4)
    assert outcome.forgotten == {"tombstones of tasks": 1}
    assert ids() == {first, by_task, newest, *other}
    named = f'execution {first}: a row names it in "Shop export of executions".of'
    line = f"Sweep passed 4 executions that the database does not let it delete, such as {named}"
    assert [one.getMessage() for one in caplog.records].count(line) == 1


def test_an_execution_that_the_database_refuses_to_delete_is_found_alone(
    undeletable: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    made_ids = ended(41)
    undeletable([made_ids[3], made_ids[30]])
    outcome = sweep()
    assert (outcome.executions, outcome.tasks, outcome.passed) == (38, 38, 2)
    assert ids() == {made_ids[3], made_ids[30], made_ids[-1]}
    assert f"such as execution {made_ids[3]}: execution {made_ids[3]} is held" in caplog.text
    assert outcome.failed == {}


def test_a_page_of_executions_that_are_refused_holds_up_no_other_page(
    undeletable: Callable[..., None], small_pages: None
) -> None:
    """A message that is out of time must not meet the same page again."""
    made_ids = ended(33)
    undeletable(made_ids[20:])
    outcome, messages = sweep(seconds=0), 1
    while outcome.stopped_at and messages < 60:
        outcome = sweep(*outcome.stopped_at, seconds=0)
        messages += 1
    assert outcome.stopped_at is None
    assert ids() == set(made_ids[20:])


def test_a_step_that_fails_is_logged_and_the_others_are_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    monkeypatch.setattr(retention, "find", broken)
    monkeypatch.setattr(sweeping, "HOUSEKEEPING", (Chore("broken", broken, OLD), *housekeeping.HOUSEKEEPING))
    DeletedTask.objects.create(task_id=7, job_id="", at=LONG_AGO)
    outcome = sweep()
    assert list(outcome.failed) == ["executions", "broken"]
    assert outcome.forgotten == {"tombstones of tasks": 1}
    assert "Sweep left its step 'executions', which failed: division by zero" in caplog.text
    assert LeaseRow.objects.get().held_until is None


def test_a_sweep_without_a_database_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other steps would fail, too."""
    steps: list[str] = []

    def down(*_: Any) -> Any:
        steps.append("executions")
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(retention, "find", down)
    last = Chore("last", lambda _: steps.append("last") or 0, OLD)  # type: ignore[func-returns-value]
    monkeypatch.setattr(sweeping, "HOUSEKEEPING", (last,))
    with pytest.raises(DatabaseDown):
        sweep()
    assert steps == ["executions"]
