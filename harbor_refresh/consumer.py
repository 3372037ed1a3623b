"""Celery's consumer, mended in three places.

1. It sends the events of tasks a few times a second, many in one message. Celery sends them after each turn of the
   worker's loop. A job that does nothing has three, and to send them took two fifths of the time of the main
   process, which all jobs of a worker pass.
2. A worker goes on if a process of its pool dies, or seems to, while its connection to the broker breaks. Celery
   forgets the descriptor by which it has noticed that. If the process is still in the pool when the loop begins
   again, celery 5.7 gives that descriptor, which is None, to kombu 5.7, and the worker ends.
3. A worker goes on if it has read half of a result at that moment (`HalfResults`).

What if the worker is killed: the events of the last moment are lost, as without this. What if it stops: they are
sent before it ends. What if its connection breaks: the dispatcher keeps them, and the next event has them sent.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

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
        """Return the arguments of the loop, which begins next."""
        keep_half_results(self.pool)
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


class HalfResults:
    """The result that is being read from each process. Its methods replace two of Celery's.

    Celery's main process reads a result as it arrives, so it may have read half of one when the pipe is empty.
    Celery 5.7 forgets that half in two cases, and takes the other half for the beginning of a result: the worker
    ends, or hears nothing more from that process.

    1. The connection to the broker breaks, and the loop begins again. Here it continues where it stopped reading.
    2. The process dies. The rest is read, if the process has written it. Celery fails the job of that process.

    Afterwards the pipe holds no half of a result, and the next process may have it. A worker that is told to end
    between such a break and the new connection may still end with an error; its jobs are recovered.
    """

    def __init__(self, processes: Any) -> None:
        self._receive = processes._result_handler._recv_message
        self._flush = processes.process_flush_queues
        self._process_of = processes._fileno_to_outq
        self._reading: WeakKeyDictionary[Any, Iterator[None]] = WeakKeyDictionary()

    def receive(self, add_reader: Any, descriptor: int, callback: Callable[[Any], None]) -> Iterator[None]:
        """Read a result, or the rest of one. If the loop forgets this generator, the inner one is kept."""
        process = self._process_of[descriptor]
        one = self._reading.setdefault(process, self._receive(add_reader, descriptor, callback))
        try:
            for _ in one:  # `yield from` would close it when the loop forgets this generator
                yield
        except Exception:
            self._reading.pop(process, None)
            raise
        self._reading.pop(process, None)

    def flush(self, process: Any) -> None:
        """Read what a dead process has written. If it died in the middle of a result, that half is forgotten."""
        if one := self._reading.pop(process, None):
            with suppress(OSError, EOFError):
                next(one, None)
        self._flush(process)


def keep_half_results(pool: Any) -> None:
    """Keep the results that are read half. A pool of another kind has none: one of threads or greenlets, or that
    of processes without an event loop, which reads each result whole."""
    processes: Any = getattr(pool, "_pool", None)
    if not hasattr(getattr(processes, "_result_handler", None), "_recv_message"):
        return
    if not isinstance(getattr(processes.process_flush_queues, "__self__", None), HalfResults):
        half = HalfResults(processes)
        processes._result_handler._recv_message = half.receive
        processes.process_flush_queues = half.flush
