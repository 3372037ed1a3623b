"""The connections on which runs begin. Celery closes Django's own around each task of a project, and a new one for
each begin takes longer than all else that a job needs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from harbor_refresh.tasks.jobs.running.per_process import PerProcess

#: One that has not been used for so long may have been cut on its way, and is replaced.
IDLE_SECONDS = 30.0


class KeptConnections:
    def __init__(self) -> None:
        #: Those that no thread or greenlet uses, and when they were last used.
        self._free: list[tuple[Any, float]] = []

    @contextmanager
    def use(self) -> Iterator[None]:
        """Have Django's connection of this thread be one that is kept."""
        try:
            kept, used_at = self._free.pop()
        except IndexError:
            kept, used_at = connections.create_connection(DEFAULT_DB_ALIAS), 0.0
            kept.inc_thread_sharing()
        if time.monotonic() - used_at > IDLE_SECONDS:
            kept.close()
        of_django = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = kept
        try:
            yield
        except BaseException:
            kept.close()  # a time limit may have struck in the middle of a statement
            raise
        finally:
            connections[DEFAULT_DB_ALIAS] = of_django
        self._free.append((kept, time.monotonic()))

    def stop(self) -> None:
        while self._free:
            self._free.pop()[0].close()


of_this_process = PerProcess(KeptConnections)
