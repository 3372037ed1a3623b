"""The progress of an execution as a server-sent event."""

import json
from typing import Any

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from tests.integration.executions.api.api_client import Program, answered
from tests.integration.sample_executions import made


def event(program: Program, execution_id: int) -> tuple[str, dict[str, Any]]:
    response = program.send("GET", f"/executions/{execution_id}/events")
    assert (response.status_code, response["Content-Type"]) == (200, "text/event-stream")
    retry, name, data = response.content.decode().removesuffix("\n\n").split("\n")
    assert retry == "retry: 1000"
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_the_event_tells_the_progress_and_the_end(program: Program) -> None:
    execution, (first, second) = made(2)
    assert event(program, execution.pk)[1]["counts"] == {"Pending": 2}
    report([Report(first, "Success")])
    name, data = event(program, execution.pk)
    assert (name, data["counts"], data["progress"]) == ("progress", {"Pending": 1, "Success": 1}, 0.5)
    report([Report(second, "Error")])
    refresh([execution.pk])
    name, data = event(program, execution.pk)
    assert (name, data["status"], data["revision"]) == ("end", "Error", 1)


def test_an_execution_that_is_not_there_has_no_event(program: Program) -> None:
    execution, _ = made(1)
    answered(program.send("GET", f"/executions/{execution.pk + 1}/events"), 404)
