"""create: an execution with its tasks, true from the first moment, or refused and not written."""

from typing import Any

import pytest

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution, Task
from tests.integration.database_state import rows

pytestmark = pytest.mark.usefixtures("database")


def test_ten_thousand_tasks_are_created_in_one_call() -> None:
    execution = create(
        NewExecution(
            "SCAN_ALL",
            vendor_id=7,
            trigger="SCHEDULE",
            extra_attrs={"a": 1},
            tasks=[NewTask(f"job-{number}", {"n": number}) for number in range(10_000)],
        )
    )
    assert rows(Execution)[execution.pk] | {"start_time": 0, "update_time": 0} == {
        "pk": execution.pk,
        "id": execution.pk,
        "vendor_type": "SCAN_ALL",
        "vendor_id": 7,
        "status": "Running",
        "status_message": "",
        "trigger": "SCHEDULE",
        "extra_attrs": {"a": 1},
        "start_time": 0,
        "update_time": 0,
        "end_time": None,
        "revision": 0,
    }
    tasks = list(execution.tasks.order_by("pk").values_list("job_id", "extra_attrs", "status"))
    assert tasks == [(f"job-{n}", {"n": n}, "Pending") for n in range(10_000)]


@pytest.mark.parametrize("vendor", ["", "A:B", ":", "V" * 65, "A\x00", "A\ud800", "\udfff", None, 5, b"A", ["A"]])
def test_a_vendor_that_the_queue_could_not_read_is_refused_and_nothing_is_written(vendor: Any) -> None:
    with pytest.raises(Refused, match="takes 1 to 64 characters"):
        create(NewExecution(vendor, tasks=[NewTask()]))
    assert (rows(Execution), rows(Task)) == ({}, {})


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value |= {"a": value, "b": value}
    return value


@pytest.mark.parametrize(
    ("told", "why"),
    [
        *(
            ({"vendor_id": odd}, "vendor_id takes a whole number")
            for odd in (2**63, -(2**63) - 1, "", "x" * 256, "x\x00", "\ud800", b"x", None, 1.5, True)
        ),
        *(
            ({"trigger": odd}, "trigger takes at most 16 characters")
            for odd in ("x" * 17, "x\x00", "\ud800", None, 5)
        ),
        *(
            ({"extra_attrs": odd}, "extra_attrs takes a dict that is JSON")
            for odd in (None, [], "{}", 5, {"a": {1}}, {"a": float("nan")}, {"a": "\x00"}, {"a": "\ud800"})
        ),
        ({"extra_attrs": cyclic()}, "extra_attrs takes a dict that is JSON of at most 2,000,000 bytes: more than"),
        ({"extra_attrs": {"a": "x" * 2_000_000}}, "it takes 2,000,009 bytes"),
        ({"extra_attrs": {"a": 10**5_000}}, "extra_attrs takes a dict that is JSON"),
        ({"tasks": [NewTask("x" * 65)]}, "task: job_id takes at most 64 characters"),
        ({"tasks": [NewTask("x\x00")]}, "task: job_id takes at most 64 characters"),
        ({"tasks": [NewTask("x", {"a": {1}})]}, "task x: extra_attrs takes a dict that is JSON"),
        ({"tasks": [NewTask("x", None)]}, "task x: extra_attrs takes a dict that is JSON"),  # type: ignore[arg-type]
    ],
)
def test_values_that_the_database_cannot_store_are_refused_in_plain_words_and_nothing_is_written(
    told: dict[str, Any], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        create(NewExecution("BAD", **told))
    assert (rows(Execution), rows(Task)) == ({}, {})


def test_values_at_a_bound_are_written() -> None:
    told: dict[str, Any] = {"vendor_id": -(2**63), "trigger": "x" * 16, "extra_attrs": {"a": "x" * 1_999_991}}
    execution = create(NewExecution("V" * 64, **told, tasks=(NewTask("x" * 64) for _ in range(2))))  # type: ignore[arg-type]
    execution.refresh_from_db()
    assert {name: getattr(execution, name) for name in told} == told
    assert execution.tasks.count() == 2
