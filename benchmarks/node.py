"""`python -m benchmarks.node`: one process, one node, that works when it is told to.

It reads words from standard input and answers each with one line of JSON on standard output:

| word | does | answers |
| --- | --- | --- |
| (start) | Django, connections, for the queue's strategy a heartbeat | `{"ready": true}` |
| `go` | one cycle of the strategy, or whatever its mode is | `{"succeeded": n, "failed": n, "busy": n}` |
| `recover` | `usecases.recover`, which is a tick of its own in production | `{"recovered": n}` |
| `end` | ends; so does the end of the input | |

Meanwhile `{"working": n}` tells a few times a second how many refreshes it has done. SIGTERM ends a cycle in
its middle; then `{"working": n}` is exact and the last word. The strategy and its tunables come by the
environment, as in production.
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

TELL_SECONDS = 0.1


class Voice:
    """One line at a time, from two threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def say(self, **message: Any) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()


class Ended(BaseException):
    """The budget is spent: leave the cycle where it is."""


class Tally:
    """How many refreshes have been done so far: those of a set when they are committed, those of one when
    the next one begins. What a cycle returns is the true number; this is what is known of one that was ended.
    """

    def __init__(self, voice: Voice) -> None:
        self.count = 0
        self._one = 0
        self._voice = voice

    def visit(self, point: str, execution_ids: Sequence[int]) -> None:
        match point:
            case "deciding":
                transaction.on_commit(partial(self._add, len(execution_ids)))
            case "one":
                self._add(self._one)
                self._one = 1

    def _add(self, count: int) -> None:
        self.count += count

    def tell_for_ever(self) -> None:
        told, pause = 0, threading.Event()
        while not pause.wait(TELL_SECONDS):
            if self.count != told:
                told = self.count
                self._voice.say(working=told)


def main() -> None:
    die_with_parent(signal.SIGKILL)
    options = parse()
    django.setup()
    from benchmarks import works
    from executions import points

    voice = Voice()
    tally = Tally(voice)
    work = works.prepared(options.mode, options.first, options.last)
    points.visitors.append(tally.visit)
    threading.Thread(target=tally.tell_for_ever, name="tally", daemon=True).start()
    voice.say(ready=True)
    signal.signal(signal.SIGTERM, _end)
    try:
        for line in sys.stdin:
            match line.strip():
                case "go":
                    voice.say(**work())
                case "recover":
                    voice.say(recovered=works.recover())
                case "end":
                    return
    except Ended:
        voice.say(working=tally.count)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise Ended


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mode", choices=("cycle", "limit", "redis"))
    parser.add_argument("--first", type=int, default=1, help="limit: the first id of its share")
    parser.add_argument("--last", type=int, default=0, help="limit: the last one")
    return parser.parse_args()


if __name__ == "__main__":
    main()
