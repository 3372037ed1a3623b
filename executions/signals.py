"""What happens in the domain, said once. `narrator` turns it into log lines; `tasks` listens for `woken`.

| signal              | sent when                                            | with                               |
| ------------------- | ---------------------------------------------------- | ---------------------------------- |
| `woken`             | work waits and no tick is on its way                 | `delay`, `anyway` (tasks/wakeup)   |
| `claimed`           | a batch has been claimed and handed to the workers   | `count`                            |
| `refreshed`         | a claim has been worked                              | `outcome`                          |
| `outlived`          | a claim came back after it had been recovered        | `claim`, `count`                   |
| `recovered`         | claims of dead nodes, or old ones, went back         | `count`                            |
| `discarded`         | a member that nobody can read was dropped            | `members`                          |
| `quarantined`       | executions failed too often and were set aside       | `execution_ids`, `reason`          |
| `paroled`           | executions left quarantine for another try           | `execution_ids`                    |
| `marks_lost`        | Redis was away when executions were to be marked     | `count`, `error`                   |
| `database_away`     | PostgreSQL was away; the claim went back, uncounted  | `count`, `error`                   |
| `refused`           | reports that could not be used                       | `refusals`                         |
| `reconciled`        | a reconcile pass has ended                           | `outcome`                          |
| `lease_taken_over`  | a pass took over the lease of one that let it expire | `holder`, `until`                  |
| `watermark_doubted` | the watermark cannot be trusted; all is looked at    | `doubt`                            |
| `stops_lost`        | Redis was away when jobs were to be asked to stop    | `count`, `error`                   |
| `recorded`          | jobs are recorded whose messages are to be published | `execution_id`, or `after` (tasks) |
| `reaped`            | a pass of the reaper over the jobs has ended         | `outcome`                          |
| `jobs_recovered`    | a pass that recovers jobs has ended                  | `outcome`                          |
| `troubled`          | jobs that could not be settled: the next pass tries  | `error`                            |
| `lock_lost`         | a cycle of the `lock` design lost its lock and ended |                                    |
"""

from django.dispatch import Signal

woken = Signal()
claimed = Signal()
refreshed = Signal()
outlived = Signal()
recovered = Signal()
discarded = Signal()
quarantined = Signal()
paroled = Signal()
marks_lost = Signal()
database_away = Signal()
refused = Signal()
reconciled = Signal()
lease_taken_over = Signal()
watermark_doubted = Signal()
recorded = Signal()
reaped = Signal()
jobs_recovered = Signal()
stops_lost = Signal()
troubled = Signal()
lock_lost = Signal()
