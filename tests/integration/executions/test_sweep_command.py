"""`manage.py harbor sweep`: what it counts, says and refuses."""

from datetime import timedelta

import pytest
from django.db import connection

from harbor_refresh.executions.lifecycle import sweep as sweeping
from harbor_refresh.executions.lifecycle.housekeeping import Chore
from harbor_refresh.executions.lifecycle.lease import Lease
from harbor_refresh.executions.models import Execution
from tests.integration.command_output import data, failing, said
from tests.integration.executions.old_executions import ended

pytestmark = pytest.mark.usefixtures("database")


def some() -> None:
    ended(4, tasks=("Success", "Error"))
    ended(3, vendor="SBOM", age=timedelta(days=40))
    ended(2, vendor="X", age=timedelta(days=40))


def left() -> int:
    return Execution.objects.count()


def test_a_dry_run_counts_by_vendor_and_writes_nothing() -> None:
    some()
    assert data("harbor", "sweep", "--dry-run") == {
        "dry_run": True,
        "found": {"IMAGE_SCAN": {"executions": 3, "tasks": 6}, "SBOM": {"executions": 2, "tasks": 2}},
    }
    assert said("harbor", "sweep", "--dry-run").splitlines() == [
        "Would delete 5 executions with 8 tasks. Dry run: nothing was written.",
        "vendor      executions  tasks",
        "IMAGE_SCAN           3      6",
        "SBOM                 2      2",
    ]
    assert left() == 9


def test_it_deletes_what_the_settings_do_not_keep_and_says_how_much() -> None:
    some()
    ended(vendor="X", status="Running", tasks=("Running",), age=timedelta(days=8))
    assert data("harbor", "sweep") == {
        "dry_run": False,
        "executions": 5,
        "tasks": 8,
        "old_rows": {},
        "passed": {"executions": 0, "example": ""},
        "failed": {},
    }
    assert left() == 5
    assert said("harbor", "sweep").splitlines() == [
        "Deleted 0 executions with 0 tasks, and 0 old rows.",
    ]


def test_a_second_sweep_at_once_fails_and_names_the_first() -> None:
    some()
    lease = Lease("sweep")
    assert lease.take() is None
    printed, failure = failing("harbor", "sweep")
    assert printed == ""
    assert failure.startswith("another sweep is running, so this one did nothing.")
    assert f"{lease.holder} has the lease until " in failure
    assert left() == 9
    lease.release()
    assert data("harbor", "sweep")["executions"] == 5


def test_executions_that_rows_of_the_project_name_are_counted_and_told() -> None:
    some()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE export (batch bigint REFERENCES execution DEFERRABLE INITIALLY DEFERRED)")
        cursor.execute("INSERT INTO export SELECT id FROM execution WHERE vendor_type = 'SBOM'")
    first = Execution.objects.filter(vendor_type="SBOM").earliest("pk").pk
    assert said("harbor", "sweep", "--dry-run").splitlines() == [
        "Would delete 3 executions with 6 tasks. Dry run: nothing was written.",
        "vendor      executions  tasks",
        "IMAGE_SCAN           3      6",
        "SBOM                 0      0",
        "2 more stay, because rows name them in export.batch.",
    ]
    assert said("harbor", "sweep").splitlines() == [
        "Deleted 3 executions with 6 tasks, and 0 old rows.",
        "2 more stay, because the database does not let them be deleted, such as execution "
        f"{first}: a row names it in export.batch.",
    ]
    assert data("harbor", "sweep")["passed"] == {
        "executions": 2,
        "example": f"{first}: a row names it in export.batch",
    }
    assert left() == 6
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE export")
    assert data("harbor", "sweep")["executions"] == 2


def test_a_step_that_fails_fails_the_command_after_the_others_were_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise ValueError("no such table")

    monkeypatch.setattr(sweeping, "HOUSEKEEPING", (Chore("old rows", broken, timedelta(0)),))
    some()
    printed, failure = failing("harbor", "sweep")
    assert printed.startswith("Deleted 5 executions")
    assert failure == "the step 'old rows' failed: no such table"
