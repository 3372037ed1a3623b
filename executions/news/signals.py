"""Signals of what happens to executions. `execution_log` writes their log lines.

docs/operations.md#signals says when each is sent, and with which values.
"""

from django.dispatch import Signal

refreshed = Signal()
database_away = Signal()
refused = Signal()
quarantined = Signal()
released_from_quarantine = Signal()
closed_overdue = Signal()
rate_unknown = Signal()
deliveries_died = Signal()
deliverer_failed = Signal()
handler_failed = Signal()
handlers_missing = Signal()
check_in_dropped = Signal()
swept = Signal()
dangling = Signal()
