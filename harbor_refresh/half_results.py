"""Results that Celery has read half from a process of its pool.

Celery's main process reads a result as it arrives, so it may have read half of one when the pipe is empty. Celery
5.7 forgets that half in two cases. Then it takes the other half for the beginning of a result, and the worker ends
or hears nothing more from that process.

| what happens meanwhile | here |
| --- | --- |
| the connection to the broker breaks, and the loop begins again | the loop goes on where it stopped reading |
| the process dies | the rest is read, if the process has written it. Celery fails the job of that process |

In both cases the pipe holds no half of a result afterwards, and the next process may have it. A worker that is
told to end between such a break and the new connection may still end with an error; its jobs are recovered.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary


class HalfResults:
    """The result that is being read from each process. Its methods replace two of Celery's."""

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


def keep(pool: Any) -> None:
    """Keep the results that are read half. A pool of another kind has none: one of threads or greenlets, or that
    of processes without an event loop, which reads each result whole."""
    processes: Any = getattr(pool, "_pool", None)
    if not hasattr(getattr(processes, "_result_handler", None), "_recv_message"):
        return
    if not isinstance(getattr(processes.process_flush_queues, "__self__", None), HalfResults):
        half = HalfResults(processes)
        processes._result_handler._recv_message = half.receive
        processes.process_flush_queues = half.flush
