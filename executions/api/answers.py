"""Answers that several operations share."""

from typing import Any

from pydantic import BaseModel

from harbor_refresh.executions.api.problems import ProblemDetails
from harbor_refresh.executions.api.schemas import ExecutionDetail, ExecutionOut, as_dict
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries.progress import progress

#: Any operation may answer with these.
EVERYWHERE = (401, 403, 422, 429, 503)


def answers(good: dict[int, type[BaseModel] | None], *problems: int) -> dict[int, Any]:
    """What an operation may answer: what it makes, and the problems, each of the one shape."""
    return {**good, **dict.fromkeys((*EVERYWHERE, *problems), ProblemDetails)}


def require_execution(execution_id: int) -> None:
    if not Execution.objects.filter(pk=execution_id).exists():
        raise NoSuchExecution(execution_id)


def detail(execution_id: int) -> ExecutionDetail:
    execution = Execution.objects.select_related("quarantine").filter(pk=execution_id).first()
    if execution is None:
        raise NoSuchExecution(execution_id)
    made = progress(execution_id)
    quarantine = getattr(execution, "quarantine", None)
    return ExecutionDetail(
        **as_dict(execution, ExecutionOut),
        counts=made.counts,
        tasks=made.total,
        progress=made.share,
        quarantine=quarantine.reason if quarantine else None,
    )
