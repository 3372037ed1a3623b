"""What happens in the pipeline and to jobs, said once. `narrator` turns it into log lines.

Those of executions.signals are sent from here as well.

| signal              | sent when                                            | with                               |
| ------------------- | ---------------------------------------------------- | ---------------------------------- |
| `claimed`           | a batch has been claimed and handed to the workers   | `count`                            |
| `outlived`          | a claim came back after it had been recovered        | `claim`, `count`                   |
| `recovered`         | claims of dead nodes, or old ones, went back         | `count`                            |
| `discarded`         | a member that nobody can read was dropped            | `members`                          |
| `marks_lost`        | Redis was away when executions were to be marked     | `count`, `error`                   |
| `reconciled`        | a reconcile pass has ended                           | `outcome`                          |
| `lease_taken_over`  | a pass took over the lease of one that let it expire | `holder`, `until`                  |
| `watermark_doubted` | the watermark cannot be trusted; all is looked at    | `doubt`                            |
| `stops_lost`        | Redis was away when jobs were to be asked to stop    | `count`, `error`                   |
| `reaped`            | a pass of the reaper over the jobs has ended         | `outcome`                          |
| `jobs_recovered`    | a pass that recovers jobs has ended                  | `outcome`                          |
| `troubled`          | jobs that could not be settled: the next pass tries  | `error`                            |
| `lock_lost`         | a cycle of the `lock` design lost its lock and ended |                                    |
"""

from django.dispatch import Signal

from executions.signals import database_away, refreshed, refused

claimed = Signal()
outlived = Signal()
recovered = Signal()
discarded = Signal()
marks_lost = Signal()
reconciled = Signal()
lease_taken_over = Signal()
watermark_doubted = Signal()
stops_lost = Signal()
reaped = Signal()
jobs_recovered = Signal()
troubled = Signal()
lock_lost = Signal()

__all__ = ["database_away", "refreshed", "refused"]
