"""The database refuses rows that break the rules, however they are written."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.executions.status import LAST_REVISION
from tests.integration.database_state import rows

pytestmark = pytest.mark.usefixtures("database")

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def execution(database: str) -> Execution:
    return Execution.objects.create(vendor_type="TEST")


def refused_by(constraint: str, model: Any, **values: Any) -> None:
    before = rows(model)
    with pytest.raises(IntegrityError, match=f'"{constraint}"'), transaction.atomic():
        model.objects.create(**values)
    assert rows(model) == before


EXECUTIONS: list[tuple[str, dict[str, Any]]] = [
    ("execution_status_known", {"status": "Succeed"}),
    ("execution_status_known", {"status": ""}),
    ("execution_ends_when_final", {"status": "Running", "end_time": NOW}),
    ("execution_ends_when_final", {"status": "Success"}),
    ("execution_ends_when_final", {"status": "Stopped"}),
    ("execution_vendor_readable", {"vendor_type": ""}),
    ("execution_vendor_readable", {"vendor_type": "A:B"}),
    ("execution_revision_grows", {"revision": -1}),
]


@pytest.mark.parametrize(("constraint", "values"), EXECUTIONS)
def test_an_impossible_execution_is_refused(constraint: str, values: dict[str, Any]) -> None:
    refused_by(constraint, Execution, **({"vendor_type": "TEST"} | values))


TASKS: list[tuple[str, dict[str, Any]]] = [
    ("task_status_has_its_code", {"status": "Succeed", "status_code": 3, "end_time": NOW}),
    ("task_status_has_its_code", {"status": "Running", "status_code": 0}),
    ("task_status_has_its_code", {"status": "Success", "status_code": 2}),
    ("task_ends_when_final", {"status": "Success", "status_code": 3}),
    ("task_ends_when_final", {"end_time": NOW}),
    ("task_revision_in_range", {"status_revision": -1}),
    ("task_revision_in_range", {"status_revision": LAST_REVISION + 1}),
]


@pytest.mark.parametrize(("constraint", "values"), TASKS)
def test_an_impossible_task_is_refused(constraint: str, values: dict[str, Any], execution: Execution) -> None:
    refused_by(constraint, Task, execution=execution, vendor_type="TEST", **values)


def test_a_revision_has_one_history_row(execution: Execution) -> None:
    row = {"execution": execution, "from_status": "Running", "to_status": "Error", "at": NOW}
    StatusChange.objects.create(revision=1, **row)
    refused_by("status_change_once_a_revision", StatusChange, revision=1, **row)
    StatusChange.objects.create(revision=2, **row)


def test_plain_inserts_of_harbors_columns_get_their_times(database: str) -> None:
    """Hand-written SQL need not set them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO execution (vendor_type, vendor_id, status, status_message, trigger, "
            "extra_attrs, revision) VALUES ('A', 0, 'Running', '', '', '{}', 0) RETURNING start_time"
        )
        assert cursor.fetchone()[0] is not None


def test_the_columns_are_those_of_harbor(database: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, string_agg(column_name::text, ' ' ORDER BY column_name) "
            "FROM information_schema.columns WHERE table_name IN ('execution', 'task') GROUP BY 1"
        )
        assert dict(cursor.fetchall()) == {
            "execution": "end_time extra_attrs id revision start_time status status_message trigger update_time "
            "vendor_id vendor_type",
            "task": "creation_time end_time execution_id extra_attrs id job_id run_count start_time status "
            "status_code status_message status_revision update_time vendor_type",
        }
