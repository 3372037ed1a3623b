"""The tables. `execution` and `task` have Harbor's columns; data that Harbor does not have is in other tables."""

from harbor_refresh.executions.models.execution import Execution, Task
from harbor_refresh.executions.models.history import Counter, ShortenedHistory, StatusChange
from harbor_refresh.executions.models.intake import ApiToken, IdempotencyKey, ReceivedMessage
from harbor_refresh.executions.models.notifications import Callback, Delivery, Subscription
from harbor_refresh.executions.models.operations import AuditEntry, Lease, Quarantine, Release
from harbor_refresh.executions.models.structure import Addition, DeletedTask, Gate, Link, VendorKey

__all__ = [
    "Addition",
    "ApiToken",
    "AuditEntry",
    "Callback",
    "Counter",
    "DeletedTask",
    "Delivery",
    "Execution",
    "Gate",
    "IdempotencyKey",
    "Lease",
    "Link",
    "Quarantine",
    "ReceivedMessage",
    "Release",
    "ShortenedHistory",
    "StatusChange",
    "Subscription",
    "Task",
    "VendorKey",
]
