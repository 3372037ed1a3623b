"""Requests to the status hook, as a job service sends them, answered by the view itself."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import RequestFactory

from harbor_refresh.executions.api.hook import status_hook
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution, Task

SECRET = "a secret of Harbor"
BEGUN = 1_700_000_000
PATH = "/service/notifications/tasks/"


def wire(job_id: str, status: str = "Running", revision: int = BEGUN, **more: Any) -> dict[str, Any]:
    """A status change with all the fields that Harbor's job service sends."""
    metadata = {
        "id": job_id,
        "status": status,
        "name": "REPLICATION",
        "kind": "Generic",
        "unique": False,
        "ref_link": f"/api/v1/jobs/{job_id}",
        "enqueue_time": BEGUN - 5,
        "update_time": BEGUN + 5,
        "run_at": BEGUN,
        "parameters": {"src": {"type": "harbor"}},
        "revision": revision,
    }
    body = {"job_id": job_id, "status": status, "metadata": metadata | more.pop("metadata", {})}
    return body | more


def firing(
    job_id: str, upstream: str, status: str = "Running", revision: int = BEGUN, **more: Any
) -> dict[str, Any]:
    return wire(job_id, status, revision, metadata={"upstream_job_id": upstream, "kind": "Scheduled"}, **more)


def as_bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def post(body: Any, task_id: object = 0, headers: dict[str, str] | None = None) -> HttpResponse:
    """Post it with Harbor's secret, unless other headers are given."""
    given = {"Authorization": f"Harbor-Secret {SECRET}"} if headers is None else headers
    request = RequestFactory(headers=given).post(
        f"{PATH}{task_id}", as_bytes(body), content_type="application/json"
    )
    return status_hook(request, str(task_id))


def answer(body: Any, task_id: object = 0, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """Post it; return the status, and the reason if it was refused. Every refusal is a problem of RFC 9457."""
    response = post(body, task_id, headers)
    if response.status_code == 200:
        assert response.content == b"", "Harbor's job service expects nothing"
        return 200, ""
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = json.loads(response.content)
    assert problem["status"] == response.status_code
    return response.status_code, problem["detail"]


def recorded(*jobs: str, vendor: str = "REPLICATION", **attributes: Any) -> tuple[Execution, list[Task]]:
    """An execution with a task for each of these jobs."""
    execution = create(NewExecution(vendor, tasks=[NewTask(job) for job in jobs], **attributes))
    return execution, list(execution.tasks.order_by("pk"))


def is_hidden(text: str) -> bool:
    """Whether it shows nothing of a secret."""
    return "a secret of" not in text
