"""Mark executions as possibly out of date, after the commit of what changed them.

A mark that cannot be sent is logged and not raised: the change is committed, so the caller's work is done, and
reconcile finds the execution in the database.
"""

from collections.abc import Iterable
from typing import Any

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.lifecycle.rollup import refresh_at_once
from harbor_refresh.executions.news.after_commit import Member
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.strategies import strategy
from harbor_refresh.tasks.without_redis import agenda, mode


def mark(members: Iterable[str]) -> bool:
    """Put members (`ID:VENDOR`) on the queue now. False if Redis could not be reached.

    With an interval ≤ 0 there is no queue: the executions are refreshed here and at once. Without Redis they are
    refreshed here, once for all that happens at once.

    If two processes mark at once, marking is idempotent. If the process dies before the mark, reconcile
    finds the execution. If it dies between the mark and the wake-up, the scheduled tick claims it.
    """
    members = list(members)
    if not members:
        return True
    if mode.is_on():
        agenda.add_changed(names.ids(members))
        return True
    if refresh_settings().in_process:
        refresh_at_once(names.ids(members))
        return True
    try:
        must_wake = strategy().mark(members)
    except QueueUnavailable as exc:
        signals.marks_lost.send(sender=mark, count=len(members), error=str(exc))
        return False
    if must_wake:
        wakeup.send_tick()
    return True


def on_executions_touched(members: Iterable[Member], **_: Any) -> None:
    """Receive the news that harbor_refresh.executions.news.after_commit.tell_touched sends after a commit."""
    mark(names.member(*one) for one in members)
