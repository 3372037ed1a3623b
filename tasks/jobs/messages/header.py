"""The header of a job's message: which run of which task. The row knows all else."""

from typing import Any

from harbor_refresh.executions.status import MAX_ID
from harbor_refresh.executions.text import is_whole

NAME = "harbor_job"
#: No counter of ours gets larger.
MAX_COUNT = 2**31 - 1


def of(task_id: int, number: int) -> dict[str, Any]:
    return {NAME: {"task": task_id, "run": number}}


def read(header: Any) -> tuple[int, int] | None:
    """Return the task and the run. None if the header, which may hold anything, names none."""
    if not isinstance(header, dict):
        return None
    task, number = header.get("task"), header.get("run")
    return (task, number) if is_whole(task, 1, MAX_ID) and is_whole(number, 0, MAX_COUNT) else None  # type: ignore[return-value]
