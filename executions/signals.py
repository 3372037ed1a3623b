"""What happens to executions, said once. `narrator` turns it into log lines. For other apps there is `news`.

| signal              | sent when                                            | with                               |
| ------------------- | ---------------------------------------------------- | ---------------------------------- |
| `refreshed`         | a claim has been worked                              | `outcome`                          |
| `database_away`     | PostgreSQL was away; the claim went back, uncounted  | `count`, `error`                   |
| `refused`           | reports that could not be used                       | `refusals`                         |
| `quarantined`       | executions failed too often and were set aside       | `execution_ids`, `reason`          |
| `paroled`           | executions left quarantine for another try           | `execution_ids`                    |
"""

from django.dispatch import Signal

refreshed = Signal()
database_away = Signal()
refused = Signal()
quarantined = Signal()
paroled = Signal()
