"""Signals of what happens to executions. `execution_log` writes the log lines; `news` is for other apps.

| signal                     | sent when                                           | with                         |
| -------------------------- | --------------------------------------------------- | ---------------------------- |
| `refreshed`                | the executions of a claim were refreshed            | `outcome`                    |
| `database_away`            | PostgreSQL was away; a claim is released uncounted  | `count`, `error`             |
| `refused`                  | reports could not be used                           | `refusals`                   |
| `quarantined`              | executions failed too often and were quarantined    | `execution_ids`, `reason`    |
| `released_from_quarantine` | executions left quarantine for another try          | `execution_ids`              |
| `closed_overdue`           | open executions were closed by their time limit     | `execution_ids`              |
| `rate_unknown`             | the cache was away, so a request was not counted    | `error`                      |
| `deliveries_died`          | deliveries were given up: they are dead letters now | `deliveries`                 |
| `deliverer_failed`         | the deliverer met an error, and begins again        | `error`                      |
| `handler_failed`           | a handler raised; it is called again later          | `handler`, `change`, `error` |
| `handlers_missing`         | handlers have no code here any more, and rest       | `handlers`                   |
| `check_in_dropped`         | a check-in came for a vendor type with no function  | `vendor_type`, `task_id`     |
| `swept`                    | a sweep has ended, or found another one running     | `outcome`                    |
| `dangling`                 | a sweep found executions without an end             | `outcome`                    |
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
