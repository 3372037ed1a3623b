"""Signals of what happens to executions. `execution_log` writes their log lines."""

from django.dispatch import Signal

#: The executions of a claim were refreshed. With: outcome.
refreshed = Signal()
#: PostgreSQL was away; a claim is released uncounted. With: count, error.
database_away = Signal()
#: Reports could not be used. With: refusals.
refused = Signal()
#: Executions failed too often and were quarantined. With: execution_ids, reason.
quarantined = Signal()
#: Executions left quarantine for another try. With: execution_ids.
released_from_quarantine = Signal()
#: Open executions were closed by their time limit. With: execution_ids.
closed_overdue = Signal()
#: The cache was away, so a request was not counted. With: error.
rate_unknown = Signal()
#: Deliveries were given up: they are dead letters now. With: deliveries.
deliveries_died = Signal()
#: A handler raised; it is called again later. With: handler, change, error.
handler_failed = Signal()
#: Handlers have no code here any more, and rest. With: handlers.
handlers_missing = Signal()
#: A check-in came for a vendor type with no function. With: vendor_type, task_id.
check_in_dropped = Signal()
#: A sweep has ended, or found another one running. With: outcome.
swept = Signal()
#: A sweep found executions without an end. With: outcome.
dangling = Signal()
