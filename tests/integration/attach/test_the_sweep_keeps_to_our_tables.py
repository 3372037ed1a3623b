"""The sweep of an attached service: none of Harbor's rows is deleted, and ours go with their executions."""

from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle import housekeeping
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.sweep import ORPHANS, sweep
from harbor_refresh.executions.models import Quarantine, StatusChange
from tests.harbor.rows import NEVER, T1, asked, execution, task

pytestmark = pytest.mark.usefixtures("attached")


def harbors() -> list[tuple[object, ...]]:
    return asked(
        "SELECT e::text, t::text FROM execution e FULL JOIN task t ON t.execution_id = e.id ORDER BY 1, 2"
    )


def test_no_row_of_harbor_is_deleted_or_refreshed(settings: Settings) -> None:
    settings.REFRESH_RETENTION_DAYS = 1
    settings.VENDOR_EXECUTION_RETENTION_COUNT = {"*": 1}
    for _ in range(3):
        task(execution("Success", start_time=T1, end_time=T1), "Success", end_time=T1)
        task(execution("Running", start_time=T1, update_time=T1), "Success", update_time=T1)
        execution(None, start_time=NEVER)
    before = harbors()
    outcome = sweep()
    assert outcome.executions == 0
    assert outcome.failed == {}
    assert harbors() == before


def test_our_rows_of_deleted_executions_are_deleted_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "HISTORY_PAGE", 3)
    ids = [execution() for _ in range(10)]
    for of in ids:
        task(of, "Success")
    refresh(ids)
    asked("INSERT INTO execution_quarantine (execution_id, reason, attempts) VALUES (7, 'x', 5), (2, 'x', 5)")
    asked("UPDATE execution_status_change SET told = FALSE WHERE execution_id = 5")
    asked("DELETE FROM task WHERE execution_id % 2 = 1 AND execution_id > 3")
    asked("DELETE FROM execution WHERE id % 2 = 1 AND id > 3")  # none of the first page
    outcome = sweep()
    assert (outcome.forgotten, outcome.failed) == ({ORPHANS: 2 + 1}, {})
    assert sorted(StatusChange.objects.values_list("execution_id", flat=True)) == [1, 2, 3, 4, 5, 6, 8, 10]
    assert list(Quarantine.objects.values_list("pk", flat=True)) == [2]
    assert sweep().forgotten == {}
    # what subscribers were not told of stays until they are
    asked("UPDATE execution_status_change SET told = TRUE")
    assert sweep().forgotten == {ORPHANS: 1}


def test_a_long_history_with_gaps_keeps_its_newest_rows(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(housekeeping, "HISTORY_KEPT", 4)
    monkeypatch.setattr(housekeeping, "BATCH", 3)
    execution(revision=None)  # as Harbor's 2.8 has left some
    of, short = execution(revision=1_200), execution(revision=400)
    old = datetime.now(UTC) - timedelta(days=31)
    StatusChange.objects.bulk_create(
        StatusChange(
            execution_id=pk, revision=number * 100, from_status="Running", to_status="Error", at=old, told=True
        )
        for pk, count in ((of, 12), (short, 4))
        for number in range(1, count + 1)
    )
    outcome = sweep()
    assert (outcome.forgotten, outcome.failed) == ({"history": 8}, {})
    assert [one.revision for one in StatusChange.objects.filter(execution_id=of)] == [900, 1000, 1100, 1200]
    assert StatusChange.objects.filter(execution_id=short).count() == 4
    assert sweep().forgotten == {}
