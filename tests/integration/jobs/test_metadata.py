"""Metadata of jobs: they are the attributes of their tasks, and are not sent."""

from typing import Any
from uuid import UUID

import pytest
from celery import Celery, chain

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Addition, Execution, Task
from harbor_refresh.executions.text import MAX_JSON
from harbor_refresh.tasks.jobs import Handle, TrackedJob, start
from harbor_refresh.tasks.models import Job
from tests.integration.database_state import rows
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.sample_jobs import Outbox

pytestmark = pytest.mark.usefixtures("database", "outbox")

app = Celery("a team", set_as_current=False)


@app.task(base=TrackedJob, name="copy", shared=False)
def copy(job: Handle, layer: int) -> None:
    pass


def with_meta(layer: int, meta: Any) -> Any:
    return copy.si(layer).set(meta=meta, queue="slow")


def test_the_task_of_a_job_has_its_metadata_and_its_message_has_none(outbox: Outbox) -> None:
    first, then = with_meta(1, {"layer": 1}), with_meta(2, {"layer": 2, "of": ["a", None]})
    execution = start("SCAN", jobs=[chain(first, then), copy.si(3), with_meta(4, None)])
    execution.add([with_meta(5, {"layer": 5})])

    assert list(Task.objects.order_by("pk").values_list("extra_attrs", flat=True)) == [
        {"layer": 1},
        {"layer": 2, "of": ["a", None]},
        {},
        {},
        {"layer": 5},
    ]
    assert {str(options) for options in Job.objects.values_list("options", flat=True)} == {
        "{'queue': 'slow'}",
        "{}",
    }
    assert all("meta" not in message.options for message in outbox.messages)


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ("layer 7", r"copy: meta takes a dict, as in \.set\(meta={'layer': 7}\), and got 'layer 7'"),
        ({"layer": object()}, "takes a dict that is JSON"),
        ({"layer": UUID(int=7)}, "takes a dict that is JSON"),
        ({"layer": float("nan")}, "takes a dict that is JSON"),
        ({"layer": "a\x00b"}, "takes a dict that is JSON"),
        ({"layer": "a" * MAX_JSON}, "takes a dict that is JSON of at most 2,000,000 bytes"),
    ],
)
def test_metadata_that_cannot_be_stored_are_refused_and_nothing_is_written(
    meta: Any, why: str, outbox: Outbox
) -> None:
    with pytest.raises(Refused, match=why):
        start("SCAN", jobs=[copy.s(1), with_meta(2, meta)])
    assert not Execution.objects.exists()

    execution = start("SCAN", open=True)
    before = rows(Task)
    with pytest.raises(Refused, match=why):
        execution.add([copy.s(1), with_meta(2, meta)], once="k")
    assert (rows(Task), rows(Job), rows(Addition), outbox.messages) == (before, {}, {}, [])


def test_the_api_finds_tasks_by_their_metadata(outbox: Outbox) -> None:
    execution = start("SCAN", jobs=[with_meta(n, {"layer": {"number": n}, "even": n % 2 == 0}) for n in range(4)])
    start("SCAN", jobs=[with_meta(2, {"layer": {"number": 2}})])
    program, tasks = Program(token(Scope.READ)), list(execution.tasks.order_by("pk").values_list("pk", flat=True))

    def found(query: str) -> list[int]:
        return [one["id"] for one in program.get(f"/executions/{execution.pk}/tasks?{query}")["items"]]

    assert found("attribute=layer.number=2") == [tasks[2]]
    assert found("attribute=even=true") == [tasks[0], tasks[2]]
    assert found("attribute=even=true&attribute=layer.number=1") == []
    assert found("attribute=even=true&status=Running") == []
    assert found("") == tasks
    program.get(f"/executions/{execution.pk}/tasks?attribute=layer", status=400)
