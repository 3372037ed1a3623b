"""The progress of an execution as server-sent events."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from tests.integration.executions.api.api_client import Program, answered
from tests.integration.sample_executions import delete, made


@pytest.fixture(autouse=True)
def polls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harbor_refresh.executions.queries.progress.SECONDS_BETWEEN", 0.0)


def stream(program: Program, execution_id: int) -> Any:
    response = program.send("GET", f"/executions/{execution_id}/events")
    assert (response.status_code, response["Content-Type"]) == (200, "text/event-stream")
    return response


def read(texts: Iterator[bytes]) -> tuple[str, dict[str, Any]]:
    for text in texts:
        if not text.startswith(b":"):
            name, data = text.decode().strip().split("\n")
            return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))
    raise AssertionError("the stream ended")


def test_a_stream_tells_each_change_and_ends_with_the_execution(program: Program) -> None:
    execution, (first, second) = made(2)
    response = stream(program, execution.pk)
    texts = iter(response.streaming_content)
    assert read(texts)[1]["counts"] == {"Pending": 2}
    report([Report(first, "Success")])
    name, data = read(texts)
    assert (name, data["counts"], data["progress"]) == ("progress", {"Pending": 1, "Success": 1}, 0.5)
    report([Report(second, "Error")])
    refresh([execution.pk])
    name, data = read(texts)
    assert (name, data["status"], data["revision"]) == ("end", "Error", 1)
    assert list(texts) == []
    response.close()


def test_a_stream_ends_when_its_execution_is_deleted(program: Program) -> None:
    execution, _ = made(1)
    response = stream(program, execution.pk)
    texts = iter(response.streaming_content)
    read(texts)
    delete([execution.pk])
    assert list(texts) == []
    response.close()


def test_a_silent_stream_shows_that_it_is_alive(program: Program) -> None:
    execution, _ = made(1)
    response = stream(program, execution.pk)
    texts = iter(response.streaming_content)
    read(texts)
    assert next(texts) == b": still here\n\n"
    response.close()


def test_a_stream_ends_after_a_while_by_itself(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harbor_refresh.executions.queries.progress.SECONDS_OF_A_STREAM", 0.0)
    execution, _ = made(1)
    response = stream(program, execution.pk)
    assert len(list(response.streaming_content)) == 1
    response.close()


def test_a_process_serves_so_many_streams_and_a_closed_one_makes_room(program: Program) -> None:
    execution, _ = made(1)
    open_streams = [stream(program, execution.pk) for _ in range(2)]
    refused = program.send("GET", f"/executions/{execution.pk}/events")
    assert refused["Retry-After"] == "5"
    assert "2 event streams" in answered(refused, 503)["detail"]
    open_streams.pop().close()
    open_streams.append(stream(program, execution.pk))
    for response in open_streams:
        response.close()
    stream(program, execution.pk).close()
