"""Signals of what happens in the pipeline and to jobs. `pipeline_log` writes their log lines. The modules of this
app also send three signals of harbor_refresh.executions.news.signals.
"""

from django.dispatch import Signal

from harbor_refresh.executions.news.signals import database_away, refreshed, refused

#: A batch was claimed and sent to the workers. With: count.
claimed = Signal()
#: A process finished a claim after it had been recovered. With: claim, count.
claim_expired = Signal()
#: Claims of dead nodes, or old claims, were recovered. With: count.
recovered = Signal()
#: A member that cannot be read was dropped. With: members.
discarded = Signal()
#: Keys with our names and foreign contents were dropped. With: keys.
keys_dropped = Signal()
#: Redis was away when executions were to be marked. With: count, error.
marks_lost = Signal()
#: A reconcile pass has ended, was postponed or found another one running. With: outcome.
reconciled = Signal()
#: A reconcile pass looks at everything, because it cannot trust the watermark. With: rescan_reason.
watermark_untrusted = Signal()
#: Workers were silent for two looks, and their jobs are released. With: names.
nodes_died = Signal()
#: Runs of dead processes were released. With: count.
runs_released = Signal()
#: A pass over silent jobs has ended, whatever it found. With: outcome.
reaped = Signal()
#: The database refused a verb for these executions. With: verb, reasons, by their ids.
bulk_refused = Signal()
#: A person paused a queue of the broker. With: queue, by, reason.
queue_paused = Signal()
#: A person resumed it after lasted seconds. With: queue, by, lasted.
queue_resumed = Signal()
#: A cycle of the strategy lock lost its lock and ended.
lock_lost = Signal()
#: A tick took Harbor's own marks onto the queue. With: count.
legacy_taken = Signal()
#: A tick could not look for Harbor's own marks. With: error.
legacy_unread = Signal()

__all__ = ["database_away", "refreshed", "refused"]
