"""The signals that end `make up`, as flags.

Flags and not exceptions: one raised out of a handler could lose a process that was just started.
"""

import signal
import time
from types import FrameType

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECOND_THOUGHT_SECONDS = 0.5


class StopSignals:
    """Whether we were asked to end, and whether in a hurry."""

    def __init__(self) -> None:
        self._asked_at: float | None = None
        self._hurry = False

    def listen(self) -> None:
        for number in _STOP_SIGNALS:
            signal.signal(number, self._note)

    def asked(self) -> bool:
        """Whether a signal asked us to end."""
        return self._asked_at is not None

    def hurry(self) -> bool:
        """Whether Ctrl-C was pressed again."""
        return self._hurry

    def _note(self, number: int, _frame: FrameType | None) -> None:
        """A later Ctrl-C hurries, an echo of the first signal does not: one that is sent to the
        whole process group arrives twice, since make passes SIGTERM on."""
        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
        elif number == signal.SIGINT and now - self._asked_at > _SECOND_THOUGHT_SECONDS:
            self._hurry = True
