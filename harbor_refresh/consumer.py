"""Celery's consumer, mended in two places.

1. It sends the events of tasks a few times a second, many in one message. Celery sends them after each turn of the
   worker's loop. A job that does nothing has three, and to send them took two fifths of the time of the main
   process, which all jobs of a worker pass.
2. A worker goes on if a process of its pool dies, or seems to, while its connection to the broker breaks. Celery
   forgets the descriptor by which it has noticed that. If the process is still in the pool when the loop begins
   again, celery 5.7 gives that descriptor, which is None, to kombu 5.7, and the worker ends.

If the worker is killed, then the events of the last moment are lost, as without this. If it stops, then they are
sent before it ends. If its connection breaks, then the dispatcher keeps them, and the next event has them sent.
"""

from time import monotonic
from typing import Any

from celery.worker import consumer

#: Flower and others see a task at most so much later. The time of an event is that of the task.
SECONDS = 0.1
#: How long to wait, in all, for processes whose deaths were noticed: each is gone a moment later.
DYING_SECONDS = 1.0


class Consumer(consumer.Consumer):
    hub: Any  # the stubs know neither of these two
    _flush_events: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        self._is_sent_at = 0.0
        super().__init__(*args, **options)

    def loop_args(self) -> Any:
        mend(self.pool)
        return super().loop_args()

    def on_send_event_buffered(self) -> None:  # type: ignore[override]  # in the stubs it returns a function
        now = monotonic()
        # a moment and no flag, because the loop forgets what it has to do later when the connection breaks
        if self.hub and now >= self._is_sent_at:
            self._is_sent_at = now + SECONDS
            self.hub.call_later(SECONDS, self._flush_events)

    def shutdown(self) -> None:
        self._flush_events()
        super().shutdown()


def mend(pool: Any) -> None:
    """Remove from a pool of processes those whose deaths were noticed, and start others in their place. One that
    lives after all gets a descriptor again. A pool of another kind has neither."""
    processes = getattr(pool, "_pool", None)
    forgotten = [one for one in getattr(processes, "_pool", ()) if getattr(one, "_sentinel_poll", 0) is None]
    if processes is None or not forgotten:
        return
    until = monotonic() + DYING_SECONDS
    for one in forgotten:
        one.join(max(0.0, until - monotonic()))
    processes.maintain_pool()
    for one in processes._pool:
        if one in forgotten:
            del one._sentinel_poll
