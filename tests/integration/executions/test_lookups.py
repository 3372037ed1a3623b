"""Look-ups by status and by attribute: what they find, and how little they read."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.manual_status import finish
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries import lookups
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.queries.lookups import Found, find_by_attribute, find_by_status
from harbor_refresh.executions.status import Status

pytestmark = pytest.mark.usefixtures("database")


def made(*statuses: str, **attributes: Any) -> int:
    """Create an execution with a task of each of these statuses, refreshed."""
    tasks = [NewTask() for _ in statuses]
    execution = create(NewExecution("SCAN_ALL", tasks=tasks, extra_attrs=attributes))
    pks = list(execution.tasks.order_by("pk").values_list("pk", flat=True))
    report([Report(pk, status, 1) for pk, status in zip(pks, statuses, strict=True)])
    refresh([execution.pk])
    return execution.pk


def test_each_status_is_found_at_any_age_by_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "COMPARED", 1)
    running = [made("Success", "Running"), made("Pending"), made("Error", "Scheduled")]
    error = [made("Error", "Success"), made("Error", "Stopped")]
    stopped = [made("Stopped", "Success")]
    made("Success")
    newest = made("Success")

    found = {status: find_by_status(status) for status in Status.values}

    assert found == {
        "Pending": Found([], is_complete=True),
        "Scheduled": Found([], is_complete=True),
        "Running": Found(running[::-1], is_complete=True),
        "Error": Found(error[::-1], is_complete=True),
        "Stopped": Found(stopped, is_complete=True),
        "Success": Found([newest], is_complete=False),
    }


def test_executions_without_tasks_are_found_among_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = made(), made()
    for pk in (old, new):
        finish(pk, Status.ERROR)
    made("Success")
    monkeypatch.setattr(lookups, "COMPARED", 2)

    assert find_by_status("Error").ids == [new]
    monkeypatch.setattr(lookups, "COMPARED", 3)
    assert find_by_status("Error").ids == [new, old]


def test_no_more_are_returned_than_the_most_and_these_are_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "MOST", 2)
    executions = [made("Error", "Error") for _ in range(4)]

    assert find_by_status("Error") == Found(executions[:1:-1], is_complete=False)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("repository.name", "library/app", ["nested"]),
        ("name", "library/app", []),
        ("count", "5", ["number", "digits"]),
        ("count", "5.0", []),
        ("count", "05", []),
        ("flag", "true", ["truth"]),
        ("flag", "false", []),
        ("tags.1", "b", ["array"]),
        ("tags.0", "b", []),
        ("tags.1", "x", ["key"]),
        ("nothing", "null", []),
        ("odd", 'say "hi" \\', ["odd"]),
        ("deep.0.1.2", "x", ["deep"]),
        ("contains", "x", ["operator"]),
        ("repository", "library/app", []),
        ("count", "1e999999", []),
        ("count", "9" * 400, []),
    ],
)
def test_an_attribute_is_found_as_the_filter_means_it(path: str, text: str, expected: list[str]) -> None:
    documents: dict[str, dict[str, Any]] = {
        "nested": {"repository": {"name": "library/app"}},
        "number": {"count": 5},
        "digits": {"count": "5"},
        "truth": {"flag": True},
        "array": {"tags": ["a", "b"]},
        "key": {"tags": {"1": "x"}},
        "null": {"nothing": None},
        "odd": {"odd": 'say "hi" \\'},
        "deep": {"deep": [[0, [0, 0, "x"]]]},
        "operator": {"contains": "x"},
        "empty": {},
    }
    names = {made(**attributes): name for name, attributes in documents.items()}

    found = find_by_attribute(path, text)

    assert sorted(names[pk] for pk in found.ids) == sorted(expected)
    assert found.is_complete
    same = Filter(attributes={path: text}).apply(Execution.objects.all()).values_list("pk", flat=True)
    assert sorted(found.ids) == sorted(same)


def test_a_value_that_very_many_have_is_found_among_the_newest_too(monkeypatch: pytest.MonkeyPatch) -> None:
    executions = [made(kind="image") for _ in range(6)]
    monkeypatch.setattr(lookups, "DOCUMENTS", 2)
    monkeypatch.setattr(lookups, "COMPARED", 1)

    found = find_by_attribute("kind", "image")

    assert not found.is_complete
    assert found.ids[0] == executions[-1]
    assert set(found.ids) <= set(executions)


@pytest.mark.parametrize(
    ("path", "text"),
    [("a" * 300, "x"), ("a", "x" * 2_000), ("a\x00", "x"), (".".join("a" * 20), "x"), ("a.1.2.3.4", "x")],
)
def test_a_path_or_a_text_that_is_too_long_is_refused(path: str, text: str) -> None:
    with pytest.raises(Refused):
        find_by_attribute(path, text)


def plan(statement: str, values: Sequence[Any] = ()) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}", values)
        lines = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("RESET enable_seqscan")
    return lines


def test_the_indexes_serve_the_queries_that_they_are_there_for() -> None:
    made("Error", repository={"name": "x"})
    by_status = Task.objects.filter(status="Error").order_by("-execution_id", "-pk")[:50].query.sql_with_params()
    by_start = Execution.objects.order_by("-start_time", "-pk")[:50].query.sql_with_params()

    assert "task_by_status" in plan(*by_status)
    assert "Sort" not in plan(*by_status)
    assert "execution_started" in plan(*by_start)
    assert "Sort" not in plan(*by_start)
    by_attribute = "SELECT id FROM execution WHERE extra_attrs @> ANY(ARRAY['{\"a\": 1}']::jsonb[])"
    assert "execution_attributes" in plan(by_attribute)


def test_a_refresh_still_leaves_the_row_on_its_page() -> None:
    """No index has a column that a refresh writes: status, end_time, update_time and revision."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'execution'")
        definitions = " ".join(row[0] for row in cursor.fetchall())
    assert "execution_started" in definitions
    for column in ("status", "end_time", "update_time", "revision"):
        assert column not in definitions.replace("execution_status", "")
