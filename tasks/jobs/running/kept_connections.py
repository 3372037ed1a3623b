"""The connections on which runs begin, where Celery closes Django's around each task, as it does by default, or
where Django has a pool. A new one for each begin would take longer than all else that a job needs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from celery import current_app

from harbor_refresh.tasks.pipeline.own_connections import another, has_pool, instead
from harbor_refresh.tasks.pipeline.per_process import PerProcess

#: One that has not been used for so long may have been cut on its way, and is replaced.
IDLE_SECONDS = 30.0
#: A begin takes a few milliseconds, so that threads and greenlets need no more.
MOST = 4


class KeptConnections:
    def __init__(self) -> None:
        self._is_needed = has_pool() or not current_app.conf.get("CELERY_DB_REUSE_MAX")
        #: Those that no thread uses, and when they were last used.
        self._free: list[tuple[Any, float]] = []

    @contextmanager
    def use(self) -> Iterator[None]:
        """Have Django's connection of this thread be one that is kept."""
        if not self._is_needed:
            yield
            return
        try:
            kept, used_at = self._free.pop()
        except IndexError:
            kept, used_at = another(), 0.0
            kept.inc_thread_sharing()
        if time.monotonic() - used_at > IDLE_SECONDS:
            kept.close()
        try:
            with instead(kept):
                yield
        except BaseException:
            kept.close()  # a time limit may have struck in the middle of a statement
            self.stop()  # if the server has restarted, the others are broken as well
            raise
        if len(self._free) < MOST:
            self._free.append((kept, time.monotonic()))
        else:
            kept.close()

    def stop(self) -> None:
        with suppress(IndexError):  # other threads use some
            while True:
                self._free.pop()[0].close()


of_this_process = PerProcess(KeptConnections)
