"""The recorder: one thread in each process that records the ends of its runs, each at once.

Meanwhile the worker fetches its next message. What if the process dies before an end is recorded: recovery
releases the job, and it runs again, although its work was done.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from harbor_refresh.tasks.jobs.runtime.per_process import PerProcess
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.without_redis import mode

log = logging.getLogger("harbor_refresh")

STOP_SECONDS = 5.0
End = Callable[[], None]


class Recorder:
    def __init__(self) -> None:
        self._ends: SimpleQueue[End | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def put(self, end: End) -> None:
        self._ends.put(end)

    def stop(self) -> None:
        """Record the remaining ends, within a few seconds, and stop."""
        self._ends.put(None)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        for end in iter(self._ends.get, None):
            try:
                end()
            except Exception:
                # recovery releases the runs of the old name
                this_node.renew()
                log.error("The end of a job cannot be recorded; it will run again", exc_info=True)


of_this_process = PerProcess(Recorder)


def put(end: End) -> None:
    if mode.is_on():
        end()
    else:
        of_this_process.get().put(end)
