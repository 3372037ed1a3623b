"""The signals that end `make up`, as flags.

They are no exceptions, because an exception raised by a handler could lose a process that was just started.
"""

import signal
import time
from types import FrameType

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECOND_THOUGHT_SECONDS = 0.5


class StopSignals:
    """Whether a signal asked us to end, and whether in a hurry."""

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
        """Note a signal. A later Ctrl-C means hurry, an echo of the first signal does not: a signal to the
        whole process group arrives twice, because make passes SIGTERM on."""
        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
        elif number == signal.SIGINT and now - self._asked_at > _SECOND_THOUGHT_SECONDS:
            self._hurry = True
