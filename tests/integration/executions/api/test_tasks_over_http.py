"""Tasks are looked at, one or in pages."""

from executions.reports import Report, report
from tests.integration.executions.api.api_client import Program
from tests.integration.sample_executions import made


def test_one_task_is_shown_with_every_column(program: Program) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Error", 5, "no space left")])
    shown = program.get(f"/tasks/{task}")
    times = {name: shown.pop(name) for name in ("creation_time", "start_time", "update_time", "end_time")}
    assert all(time.endswith("Z") for time in times.values())
    assert shown == {
        "id": task,
        "execution_id": execution.pk,
        "vendor_type": "TEST",
        "job_id": "",
        "status": "Error",
        "status_revision": 5,
        "status_message": "no space left",
        "run_count": 1,
        "extra_attrs": {},
    }
    assert program.get("/tasks/7777", 404)["detail"] == "there is no task 7777"


def test_the_tasks_of_an_execution_come_in_pages_the_oldest_first(program: Program) -> None:
    execution, tasks = made(5)
    made(1)
    report([Report(pk, "Error") for pk in tasks[::2]])
    path = f"/executions/{execution.pk}/tasks"
    first = program.get(f"{path}?limit=3")
    second = program.get(f"{path}?limit=3&cursor={first['next']}")
    assert [one["id"] for one in first["items"] + second["items"]] == tasks
    assert second["next"] is None
    assert [one["id"] for one in program.get(f"{path}?status=Error&status=Success")["items"]] == tasks[::2]
