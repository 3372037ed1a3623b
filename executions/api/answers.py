"""What operations share: who may call them, and what they answer."""

from typing import Any

from pydantic import BaseModel

from harbor_refresh.executions.api.access import Scope, may, may_report
from harbor_refresh.executions.api.problems import ProblemDetails
from harbor_refresh.executions.api.schemas import ExecutionDetail, ExecutionOut, as_dict
from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.queries.progress import progress

#: Any operation may answer with these.
EVERYWHERE = (401, 403, 422, 429, 503)


def needs(
    scope: Scope, good: type[BaseModel] | None, *problems: int, status: int = 200, signed: bool = False
) -> dict[str, Any]:
    """What an operation needs: a token with the scope, or a signature; and its answers: the good one, and the
    problems, each of the one shape."""
    bad = dict.fromkeys((*EVERYWHERE, *problems), ProblemDetails)
    return {"auth": may_report if signed else may(scope), "response": {status: good, **bad}}


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
