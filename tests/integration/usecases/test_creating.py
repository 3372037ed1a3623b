"""create, create_many: executions with their tasks, true from the first moment, or refused and not written."""

import pytest

from executions import usecases
from executions.errors import Refused
from executions.models import Execution, Task
from executions.usecases import NewExecution, NewTask, create, create_many
from tests.integration.state import rows
from tests.integration.usecases.situations import made

pytestmark = pytest.mark.usefixtures("database", "redis")


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


def test_many_executions_keep_their_own_tasks_in_their_order() -> None:
    executions = create_many(
        NewExecution("A", vendor_id=n, tasks=[NewTask(f"{n}-{i}") for i in range(n)]) for n in range(5)
    )
    assert [one.vendor_id for one in executions] == [0, 1, 2, 3, 4]
    for n, one in enumerate(executions):
        jobs = list(one.tasks.order_by("pk").values_list("job_id", flat=True))
        assert jobs == [f"{n}-{i}" for i in range(n)]


def test_a_new_execution_is_true_already() -> None:
    made(3)
    assert usecases.reconcile(full=True).drifted == 0


@pytest.mark.parametrize("vendor", ["", "A:B", ":", "V" * 65, "A\x00", "A\ud800", "\udfff"])
def test_a_vendor_that_the_queue_could_not_read_is_refused_and_nothing_is_written(
    vendor: str,
) -> None:
    with pytest.raises(Refused, match="takes 1 to 64 characters"):
        create_many([NewExecution("GOOD", tasks=[NewTask()]), NewExecution(vendor)])
    assert (rows(Execution), rows(Task)) == ({}, {})
