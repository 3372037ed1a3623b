"""What the list of executions finds by a filter, and how little it reads."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.database import among, distinct
from harbor_refresh.executions.lifecycle import links
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries import listing
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.queries.listing import bounded
from tests.integration.sample_executions import with_tasks
from tests.integration.statements import plan

pytestmark = pytest.mark.usefixtures("database")


def found(**conditions: Any) -> tuple[list[int], bool]:
    rows, compared = bounded(Filter(**conditions), Execution.objects.order_by("-pk"))
    return list(rows.values_list("pk", flat=True)), compared is None


def test_what_has_an_index_is_found_at_any_age_and_the_rest_among_the_newest_of_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rare = [create(NewExecution("RARE", 7, extra_attrs={"kind": "image"})).pk for _ in range(2)]
    quarantine(rare, 5)
    with_tasks("Error", extra_attrs={"kind": "image"})
    assert found(attributes={"kind": "image"}, statuses=("Running",)) == (rare[::-1], True)
    monkeypatch.setattr(listing, "NEWEST", 1)
    assert found(vendor_type="RARE", vendor_id=7) == (rare[::-1], True)
    assert found(started_before=datetime(9999, 1, 1, tzinfo=UTC), vendor_type="RARE") == (rare[::-1], True)
    assert found(quarantined=True) == (rare[::-1], True)
    assert found(vendor_id=7) == ([], False)
    assert found(vendor_type="RARE", attributes={"kind": "image"}) == (rare[1:], False)
    assert found(statuses=("Error",), vendor_type="OTHER") == ([], True)


def test_no_more_are_found_than_the_most_and_these_are_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST", 2)
    executions = [with_tasks("Error").pk for _ in range(4)]
    quarantine(executions, 5)
    for chosen in ({"statuses": ("Error",)}, {"quarantined": True}):
        assert found(**chosen) == (executions[:1:-1], False)


def test_the_indexes_serve_the_queries_that_they_are_there_for() -> None:
    with_tasks("Error")
    by_status = Task.objects.filter(status="Error").order_by("-execution_id", "-pk")[:50].query.sql_with_params()
    by_start = Execution.objects.order_by("-start_time", "-pk")[:50].query.sql_with_params()

    assert "task_by_status" in plan(*by_status)
    assert "Sort" not in plan(*by_status)
    assert "execution_started" in plan(*by_start)
    assert "Sort" not in plan(*by_start)


def test_the_values_of_a_column_are_one_look_up_in_the_index_each() -> None:
    for vendor in ("B", "A", "B"):
        create(NewExecution(vendor))
    with CaptureQueriesContext(connection) as asked:
        assert list(distinct(Execution.objects.all(), "vendor_type")) == ["A", "B"]
    plans = [plan(one["sql"]) for one in asked.captured_queries]
    assert ["Sort" in one for one in plans] == [False] * 3
    assert all("execution_vendor" in one for one in plans)


def test_many_ids_are_one_array_that_an_index_looks_up() -> None:
    with_tasks("Error")
    assert "Index Cond: (id = ANY (" in plan(*Execution.objects.filter(among([1, 2])).query.sql_with_params())
    with CaptureQueriesContext(connection) as asked:
        links.family([1, 2])
    assert '"parent_id" = ANY(' in asked.captured_queries[0]["sql"]
