"""Signals of what happens in the pipeline and to jobs. `pipeline_log` writes their log lines.

The modules of this app also send three signals of executions.signals.

| signal              | sent when                                            | with                               |
| ------------------- | ---------------------------------------------------- | ---------------------------------- |
| `claimed`           | a batch has been claimed and published to workers    | `count`                            |
| `outlived`          | a claim was completed or released after its recovery | `claim`, `count`                   |
| `recovered`         | claims of dead nodes, or old claims, were recovered  | `count`                            |
| `discarded`         | members that cannot be read were dropped             | `members`                          |
| `marks_lost`        | executions were not marked, because Redis was away   | `count`, `error`                   |
| `reconciled`        | a reconcile pass has ended                           | `outcome`                          |
| `lease_taken_over`  | a pass took over a lease that had expired            | `holder`, `until`                  |
| `watermark_doubted` | the watermark is not trusted; all rows are compared  | `doubt`                            |
| `stops_lost`        | jobs were not asked to stop, because Redis was away  | `count`, `error`                   |
| `reaped`            | a pass of the reaper over the jobs has ended         | `outcome`                          |
| `jobs_recovered`    | a pass that recovers jobs has ended                  | `outcome`                          |
| `troubled`          | jobs could not be settled; the next pass tries again | `error`                            |
| `action_ended`      | a process has brought an action to its end           | `action`                           |
| `action_troubled`   | an action could not do some executions               | `action`, `reasons`                |
| `action_unsent`     | the tick for an action could not be sent             | `error`                            |
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
action_ended = Signal()
action_troubled = Signal()
action_unsent = Signal()
lock_lost = Signal()

__all__ = ["database_away", "refreshed", "refused"]
