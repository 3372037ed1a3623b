"""The tables. `execution` and `task` have Harbor's columns; data that Harbor does not have is in other tables."""

from harbor_refresh.executions.installation import require_installed

# ruff: noqa: E402 - a model cannot be imported without its app, and Django's error does not say what to do
require_installed(__name__)

from harbor_refresh.executions.models.action import Action
from harbor_refresh.executions.models.addition import Addition
from harbor_refresh.executions.models.api_token import ApiToken
from harbor_refresh.executions.models.audit_entry import AuditEntry
from harbor_refresh.executions.models.callback import Callback
from harbor_refresh.executions.models.counter import Counter
from harbor_refresh.executions.models.deleted_task import DeletedTask
from harbor_refresh.executions.models.delivery import Delivery
from harbor_refresh.executions.models.execution import Execution
from harbor_refresh.executions.models.gate import Gate
from harbor_refresh.executions.models.idempotency_key import IdempotencyKey
from harbor_refresh.executions.models.lease import Lease
from harbor_refresh.executions.models.link import Link
from harbor_refresh.executions.models.old_secret import OldSecret
from harbor_refresh.executions.models.quarantine import Quarantine, Release
from harbor_refresh.executions.models.received_message import ReceivedMessage
from harbor_refresh.executions.models.shortened_history import ShortenedHistory
from harbor_refresh.executions.models.status_change import StatusChange
from harbor_refresh.executions.models.subscription import Subscription
from harbor_refresh.executions.models.task import Task
from harbor_refresh.executions.models.vendor_key import VendorKey

__all__ = [
    "Action",
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
    "OldSecret",
    "Quarantine",
    "ReceivedMessage",
    "Release",
    "ShortenedHistory",
    "StatusChange",
    "Subscription",
    "Task",
    "VendorKey",
]
