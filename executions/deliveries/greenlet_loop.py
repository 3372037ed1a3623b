"""An event loop that other greenlets of its thread do not notice.

With gevent, all "threads" of a worker are greenlets of one thread, and Python notes the running loop
of a thread. While the loop waits, every other greenlet would seem to run inside it: Django would refuse to use
the database there, and `asyncio.run` to begin.
"""

import asyncio
import selectors
from asyncio import events
from collections.abc import Coroutine
from typing import Any


class _LoopSelector(selectors.DefaultSelector):
    """The loop waits here and nowhere else, so greenlets change here and nowhere else. Meanwhile the note has what
    it had before the loop went on: nothing, or a loop of another greenlet that waits as well."""

    _noted: Any = None

    def select(self, timeout: float | None = None) -> Any:
        mine = events._get_running_loop()
        events._set_running_loop(self._noted)
        try:
            return super().select(timeout)
        finally:
            self._noted = events._get_running_loop()
            events._set_running_loop(mine)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Like `asyncio.run`."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_LoopSelector())) as runner:
        runner.run(main)
