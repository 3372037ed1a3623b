"""Signals of what happens in the pipeline and to jobs. `pipeline_log` writes their log lines.

The modules of this app also send three signals of harbor_refresh.executions.news.signals.

| signal              | sent when                                            | with                               |
| ------------------- | ---------------------------------------------------- | ---------------------------------- |
| `claimed`           | a batch has been claimed and published to workers    | `count`                            |
| `outlived`          | a claim was completed or released after its recovery | `claim`, `count`                   |
| `recovered`         | claims of dead nodes, or old claims, were recovered  | `count`                            |
| `discarded`         | members that cannot be read were dropped             | `members`                          |
| `keys_dropped`      | keys of ours with foreign contents were dropped      | `keys`                             |
| `marks_lost`        | executions were not marked, because Redis was away   | `count`, `error`                   |
| `reconciled`        | a reconcile pass has ended                           | `outcome`                          |
| `lease_taken_over`  | a pass took over a lease that had expired            | `holder`, `until`                  |
| `watermark_doubted` | the watermark is not trusted; all rows are compared  | `doubt`                            |
| `stops_lost`        | jobs were not asked to stop, because Redis was away  | `count`, `error`                   |
| `messages_lost`     | the broker was emptied, restarted or replaced        | `is_empty`                         |
| `message_refused`   | a job's message was for another database             | `job`                              |
| `database_copied`   | this database is a copy, and got a name of its own   |                                    |
| `reaped`            | a pass of the reaper over the jobs has ended         | `outcome`                          |
| `jobs_recovered`    | a pass that recovers jobs has ended                  | `outcome`                          |
| `troubled`          | jobs could not be settled; the next pass tries again | `error`                            |
| `action_ended`      | a process has brought an action to its end           | `action`                           |
| `action_troubled`   | an action could not do some executions               | `action`, `reasons`                |
| `action_unsent`     | the tick for an action could not be sent             | `error`                            |
| `queue_paused`      | a person paused a queue                              | `queue`, `by`, `reason`            |
| `queue_resumed`     | a person resumed a queue                             | `queue`, `by`, `lasted`            |
| `queues_held`       | a worker takes from these queues no more             | `queues`                           |
| `queues_taken`      | a worker takes from these queues again               | `queues`                           |
| `pauses_unknown`    | a worker cannot read which queues are paused         | `error`                            |
| `lock_lost`         | a cycle of the `lock` design lost its lock and ended |                                    |
| `legacy_taken`      | a tick took Harbor's own marks onto the queue        | `count`                            |
| `legacy_unread`     | a tick could not look for Harbor's own marks         | `error`                            |
"""

from django.dispatch import Signal

from harbor_refresh.executions.news.signals import database_away, refreshed, refused

claimed = Signal()
outlived = Signal()
recovered = Signal()
discarded = Signal()
keys_dropped = Signal()
marks_lost = Signal()
reconciled = Signal()
lease_taken_over = Signal()
watermark_doubted = Signal()
stops_lost = Signal()
messages_lost = Signal()
message_refused = Signal()
database_copied = Signal()
reaped = Signal()
jobs_recovered = Signal()
troubled = Signal()
action_ended = Signal()
action_troubled = Signal()
action_unsent = Signal()
queue_paused = Signal()
queue_resumed = Signal()
queues_held = Signal()
queues_taken = Signal()
pauses_unknown = Signal()
lock_lost = Signal()
legacy_taken = Signal()
legacy_unread = Signal()

__all__ = ["database_away", "refreshed", "refused"]
