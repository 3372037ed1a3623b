"""The tables. `execution` and `task` have Harbor's columns; data that Harbor does not have is in other tables."""

from executions.models.api_token import ApiToken
from executions.models.execution import Execution
from executions.models.idempotency_key import IdempotencyKey
from executions.models.lease import Lease
from executions.models.quarantine import Quarantine, Release
from executions.models.shortened_history import ShortenedHistory
from executions.models.status_change import StatusChange
from executions.models.task import Task

__all__ = [
    "ApiToken",
    "Execution",
    "IdempotencyKey",
    "Lease",
    "Quarantine",
    "Release",
    "ShortenedHistory",
    "StatusChange",
    "Task",
]
