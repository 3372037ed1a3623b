"""Where an execution is at this moment: on the queue, in a claim, or in neither."""

from typing import Any

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.pipeline.diagnosis import diagnose


def place_of(execution_id: int) -> dict[str, Any]:
    """Raises NoSuchExecution."""
    try:
        found = diagnose(execution_id)
    except QueueUnavailable as exc:
        return {"error": f"Redis is away, so this is unknown. {exc}"}
    claims = [
        {"node": token.node, "state": "waits for a worker" if token.is_waiting else "is being refreshed"}
        for token in (found.where.tokens if found.where else ())
    ]
    return {
        "is_queued": bool(found.where and found.where.is_queued),
        "claims": claims,
        "failures": found.where.failures if found.where else 0,
        "findings": found.findings,
    }
