"""The refresh of Harbor's executions: by the words of their tasks, and as Harbor's own refresh writes it."""

from datetime import UTC, datetime

import psycopg
import pytest
from django.db import connection

from harbor_refresh.executions.lifecycle.rollup import Refreshed, compare, refresh
from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.executions.sql import text
from tests import servers
from tests.harbor.rows import NEVER, T1, T2, T3, asked, execution, history, stored, task

pytestmark = pytest.mark.usefixtures("attached")

Given = tuple[str, int | None, datetime | None]
SUCCESS, ERROR = ("Success", 3, T2), ("Error", 3, T1)
STOPPED_IN_BULK = ("Stopped", 0, None)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([SUCCESS], ("Success", "2026-08-21 06:00:02")),
        ([SUCCESS, ERROR], ("Error", "2026-08-21 06:00:02")),
        ([SUCCESS, ("Stopped", 3, T3)], ("Stopped", "2026-08-21 06:00:03")),
        ([ERROR, ("Stopped", 3, T3)], ("Error", "2026-08-21 06:00:03")),
        ([SUCCESS, ("Pending", 0, None)], ("Running", None)),
        ([SUCCESS, ("Scheduled", 1, NEVER)], ("Running", None)),
        ([ERROR, ("Running", 2, NEVER)], ("Running", None)),
        # a bulk stop writes the word and leaves the code
        ([STOPPED_IN_BULK], ("Stopped", None)),
        ([SUCCESS, STOPPED_IN_BULK], ("Stopped", "2026-08-21 06:00:02")),
        ([("Stopped", 2, NEVER)], ("Stopped", "0001-01-01 00:00:00")),
        # and a code says nothing against its word
        ([("Running", 3, T2)], ("Running", None)),
        # a word that no core knows is neither unfinished nor anything else
        ([SUCCESS, ("Succeed", 3, T3)], ("Success", "2026-08-21 06:00:03")),
        ([ERROR, ("Finished", 0, None)], ("Error", "2026-08-21 06:00:01")),
        ([("Running", 2, NEVER), ("", 0, None)], ("Running", None)),
    ],
)
def test_the_status_and_the_end_are_what_the_words_say(
    tasks: list[Given], expected: tuple[str, str | None]
) -> None:
    of = execution("Scheduled")
    for status, code, end in tasks:
        task(of, status, code, end_time=end)
    assert refresh([of]) == Refreshed(succeeded=1, changed=1)
    assert stored(of, "status", "end_time", "revision") == (*expected, "1")
    assert history(of) == [(1, "Scheduled", expected[0])]
    assert compare(of).is_right


@pytest.mark.parametrize("words", [(), ("Succeed",), ("", "Finished")])
def test_an_execution_of_which_harbor_would_leave_the_status_is_left(words: tuple[str, ...]) -> None:
    of = execution("Error", end_time=T1, revision=3)
    for word in words:
        task(of, word)
    before = asked(f"SELECT execution::text FROM execution WHERE id = {of}")
    assert refresh([of]) == Refreshed(succeeded=1)
    assert asked(f"SELECT execution::text FROM execution WHERE id = {of}") == before
    assert history(of) == []


def test_the_time_of_the_update_is_in_whole_seconds_of_utc_whatever_the_zone_of_the_session() -> None:
    of = execution()
    task(of, "Success")
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'Asia/Tokyo'")
    before = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
    refresh([of])
    written = datetime.fromisoformat(stored(of, "update_time")[0])
    assert before <= written <= datetime.now(UTC).replace(tzinfo=None)
    assert written.microsecond == 0
    connection.close()


def test_a_row_of_nulls_is_refreshed_and_read() -> None:
    of = execution(
        None,
        vendor_id=None,
        status_message=None,
        extra_attrs=None,
        start_time=None,
        update_time=None,
        revision=None,
    )
    pk = task(
        of,
        "Success",
        job_id=None,
        status_revision=None,
        status_message=None,
        run_count=None,
        extra_attrs=None,
        creation_time=None,
        start_time=None,
        update_time=None,
        end_time=None,
    )
    assert refresh([of]) == Refreshed(succeeded=1, changed=1)
    assert stored(of, "status", "revision", "end_time") == ("Success", "1", None)
    assert history(of) == [(1, "", "Success")]
    read, its = Execution.objects.get(pk=of), Task.objects.get(pk=pk)
    assert (read.vendor_id, read.extra_attrs, read.start_time, read.end_time) == (0, {}, None, None)
    assert (its.job_id, its.extra_attrs, its.run_count, its.update_time) == ("", {}, 0, None)


def test_times_are_read_as_utc_the_year_1_as_none_and_json_as_it_is() -> None:
    of = execution("Error", end_time=NEVER, extra_attrs='{"a": [1, "é"], "a": {"b": null}}')
    task(of, "Running", extra_attrs="[]")
    read = Execution.objects.get(pk=of)
    assert (read.start_time, read.end_time) == (T1.replace(tzinfo=UTC), None)
    assert read.extra_attrs == {"a": {"b": None}}
    assert [(one.end_time, one.extra_attrs) for one in Task.objects.all()] == [(None, [])]
    assert list(Execution.objects.filter(start_time__lte=T1.replace(tzinfo=UTC)).values_list("pk", flat=True)) == [
        of
    ]
    assert not Execution.objects.filter(start_time__lt=T1.replace(tzinfo=UTC)).exists()


# beside Harbor's cores


def test_revisions_that_go_back_and_jump_leave_a_history_in_order() -> None:
    of = execution(revision=7)
    one = task(of, "Success")
    refresh([of])
    asked(f"UPDATE task SET status = 'Running' WHERE id = {one}")
    asked(f"UPDATE execution SET revision = 3 WHERE id = {of}")  # a stop writes the revision that it has read
    refresh([of])
    asked(f"UPDATE task SET status = 'Error' WHERE id = {one}")
    asked(f"UPDATE execution SET revision = 90, status = 'Stopped' WHERE id = {of}")
    refresh([of])
    asked(f"UPDATE task SET status = 'Running' WHERE id = {one}")
    asked(f"UPDATE execution SET revision = NULL WHERE id = {of}")
    refresh([of])
    assert history(of) == [
        (8, "Running", "Success"),
        (9, "Success", "Running"),
        (91, "Stopped", "Error"),
        (92, "Error", "Running"),
    ]
    assert stored(of, "revision") == ("1",)


def test_a_core_that_has_read_older_tasks_does_not_write_after_us() -> None:
    """The statements of its refresh: it reads the revision and the tasks, and writes if the revision is the same.
    The status is what we find, too, so only the revision can stop it."""
    of = execution("Running", revision=5)
    one = task(of, "Success")
    with psycopg.connect(servers.postgres.url_for(connection.settings_dict["NAME"]), autocommit=True) as core:
        (revision,) = core.execute(b"SELECT revision FROM execution").fetchone() or ()
        assert core.execute(b"SELECT status FROM task").fetchall() == [("Success",)]
        asked(f"UPDATE task SET status = 'Running' WHERE id = {one}")
        assert refresh([of]) == Refreshed(succeeded=1, changed=0)
        written = core.execute(
            "UPDATE execution SET status = 'Success', revision = revision + 1 WHERE id = %s AND revision = %s",
            [of, revision],
        )
        assert written.rowcount == 0
    assert stored(of, "status", "revision") == ("Running", "6")
    assert history(of) == []


def test_one_odd_row_fails_alone() -> None:
    """An execution whose revision is the last that an integer holds can be written by no one, Harbor neither."""
    ids = [execution() for _ in range(5)]
    for of in ids:
        task(of, "Success")
    asked(f"UPDATE execution SET revision = 2147483647 WHERE id = {ids[2]}")
    outcome = refresh(ids)
    assert (outcome.succeeded, outcome.changed) == (4, 4)
    assert outcome.failed == {ids[2]: "integer out of range"}
    assert [one.status for one in Execution.objects.order_by("pk")] == [
        "Running" if pk == ids[2] else "Success" for pk in ids
    ]
    assert StatusChange.objects.count() == 4


def test_ids_beyond_those_of_harbor_are_no_error() -> None:
    assert refresh([2**31, 2**62]) == Refreshed()


# the plan


def test_the_rollup_is_read_by_harbors_index_and_called_as_no_function() -> None:
    asked(
        "INSERT INTO execution (vendor_type, trigger, revision)"
        " SELECT 'A', 'MANUAL', 0 FROM generate_series(1, 3000)"
    )
    asked(
        "INSERT INTO task (execution_id, status, status_code, vendor_type)"
        " SELECT id, 'Success', 3, 'A' FROM execution, generate_series(1, 10)"
    )
    asked("ANALYZE execution, task")
    with connection.cursor() as cursor:
        values = {"ids": list(range(100, 200)), "dangling": "168 hours"}
        cursor.execute(f"EXPLAIN {text('harbor_refresh.tasks', 'find_drift')}", values)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "task_execution_id_idx" in plan, plan
    assert "execution_rollup" not in plan, plan
    assert "Seq Scan on task" not in plan, plan
