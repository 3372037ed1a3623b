"""The tables. `execution` and `task` have Harbor's columns; data that Harbor does not have is in other tables."""

from executions.declarations import require_installed

# ruff: noqa: E402 - a model cannot be imported without its app, and Django's error does not say what to do
require_installed(__name__)

from executions.models.action import Action
from executions.models.addition import Addition
from executions.models.api_token import ApiToken
from executions.models.audit_entry import AuditEntry
from executions.models.callback import Callback
from executions.models.counter import Counter
from executions.models.deleted_task import DeletedTask
from executions.models.delivery import Delivery
from executions.models.execution import Execution
from executions.models.gate import Gate
from executions.models.idempotency_key import IdempotencyKey
from executions.models.lease import Lease
from executions.models.link import Link
from executions.models.old_secret import OldSecret
from executions.models.quarantine import Quarantine, Release
from executions.models.received_message import ReceivedMessage
from executions.models.shortened_history import ShortenedHistory
from executions.models.status_change import StatusChange
from executions.models.subscription import Subscription
from executions.models.task import Task
from executions.models.vendor_key import VendorKey

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
