"""Celery's consumer, which sends the events of tasks a few times a second, many in one message.

Celery sends them after each turn of the worker's loop. A job that does nothing has three, and to send them took
two fifths of the time of the main process, which all jobs of a worker pass.

If the worker is killed, then the events of the last moment are lost, as without this. If it stops, then they are
sent before it ends. If its connection breaks, then the dispatcher keeps them, and the next event has them sent.
"""

from time import monotonic
from typing import Any

from celery.worker import consumer

#: Flower and others see a task at most so much later. The time of an event is that of the task.
SECONDS = 0.1


class Consumer(consumer.Consumer):
    hub: Any  # the stubs know neither of these two
    _flush_events: Any
    _is_sent_at = 0.0

    def on_send_event_buffered(self) -> None:  # type: ignore[override]  # in the stubs it returns a function
        now = monotonic()
        # a moment and no flag, because the loop forgets what it has to do later when the connection breaks
        if self.hub and now >= self._is_sent_at:
            self._is_sent_at = now + SECONDS
            self.hub.call_later(SECONDS, self._flush_events)

    def shutdown(self) -> None:
        self._flush_events()
        super().shutdown()
