"""The tables. `execution` and `task` have Harbor's columns; data that Harbor does not have is in other tables."""

from harbor_refresh.executions.models.execution import Counter, Execution, StatusChange, Task
from harbor_refresh.executions.models.notifications import Callback, Delivery, Subscription
from harbor_refresh.executions.models.operations import (
    ApiToken,
    AuditEntry,
    IdempotencyKey,
    Lease,
    Quarantine,
    Release,
)
from harbor_refresh.executions.models.structure import Addition, DeletedTask, Gate, Link, VendorKey
