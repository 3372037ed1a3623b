"""`python -m benchmarks.node`: one node in a process of its own, driven over standard input.

It reads words from standard input and answers each with one line of JSON on standard output:

| word | does | answers |
| --- | --- | --- |
| (start) | Django, connections, for the queue's strategy a heartbeat | `{"ready": true}` |
| `go` | one cycle of the strategy, or the work of another mode | `{"succeeded": n, "failed": n, "locked": n}` |
| `recover` | `recovery.recover`, which production calls on a schedule | `{"recovered": n}` |
| `end` | ends the process, as the end of the input does | |

During a cycle it writes `{"working": n}` a few times a second, n being the refreshes done so far. SIGTERM stops a
cycle in its middle; then a last `{"working": n}` is exact. The environment names the strategy and its tunables, as
in production.
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

import django
from django.db import transaction

from harbor_refresh.local.process import die_with_parent

WRITE_SECONDS = 0.1


class MessageWriter:
    """Writes whole lines from two threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, **message: Any) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()


class BudgetSpent(BaseException):
    """Raised by SIGTERM to leave the cycle where it is."""


class RefreshCounter:
    """Counts the refreshes done so far: those of a set at its commit, a single one when the next one begins.

    A cycle that ends returns the exact number; this count is for a cycle that was stopped.
    """

    def __init__(self, writer: MessageWriter) -> None:
        self.count = 0
        self._one = 0
        self._writer = writer

    def on_point(self, point: str, execution_ids: Sequence[int]) -> None:
        match point:
            case "deciding":
                transaction.on_commit(partial(self._add, len(execution_ids)))
            case "one":
                self._add(self._one)
                self._one = 1

    def _add(self, count: int) -> None:
        self.count += count

    def write_periodically(self) -> None:
        written, pause = 0, threading.Event()
        while not pause.wait(WRITE_SECONDS):
            if self.count != written:
                written = self.count
                self._writer.write(working=written)


def main() -> None:
    die_with_parent(signal.SIGKILL)
    options = parse()
    django.setup()
    from benchmarks import node_modes
    from harbor_refresh.executions.lifecycle import crash_points

    writer = MessageWriter()
    counter = RefreshCounter(writer)
    work = node_modes.prepare(options.mode, options.first, options.last)
    crash_points.handlers.append(counter.on_point)
    threading.Thread(target=counter.write_periodically, name="counter", daemon=True).start()
    writer.write(ready=True)
    signal.signal(signal.SIGTERM, _end)
    try:
        for line in sys.stdin:
            match line.strip():
                case "go":
                    writer.write(**work())
                case "recover":
                    writer.write(recovered=node_modes.recover())
                case "end":
                    return
    except BudgetSpent:
        writer.write(working=counter.count)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise BudgetSpent


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mode", choices=("cycle", "limit", "redis"))
    parser.add_argument("--first", type=int, default=1, help="limit: the first id of its share")
    parser.add_argument("--last", type=int, default=0, help="limit: the last one")
    return parser.parse_args()


if __name__ == "__main__":
    main()
