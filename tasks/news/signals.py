"""Signals of what happens in the pipeline and to jobs. `pipeline_log` writes their log lines.

docs/operations.md#signals says when each is sent, and with which values. The modules of this app also send three
signals of harbor_refresh.executions.news.signals.
"""

from django.dispatch import Signal

from harbor_refresh.executions.news.signals import database_away, refreshed, refused

claimed = Signal()
claim_expired = Signal()
recovered = Signal()
discarded = Signal()
keys_dropped = Signal()
marks_lost = Signal()
reconciled = Signal()
lease_taken_over = Signal()
watermark_untrusted = Signal()
messages_lost = Signal()
nodes_died = Signal()
runs_released = Signal()
reaped = Signal()
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
