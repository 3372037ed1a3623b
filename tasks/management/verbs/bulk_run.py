"""A verb for many executions in the process of the command, with a bar on a terminal, until it ends or is
interrupted."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harbor_refresh.executions.management.bar import bar_shown
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.queries.chosen_pages import span
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.tasks.operations.bulk_verbs import Done
from harbor_refresh.tasks.operations.bulk_walk import walk

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_to_end(verb: Verb, chosen: Filter, highest: int, total: int | None) -> tuple[Done, bool]:
    """Do the verb; return what was done, and whether that is all. Ctrl-C, SIGTERM or the end of the terminal ends
    it after the portion in progress."""
    done = Done()
    with interrupts_noticed() as is_interrupted, bar_shown(verb, total) as show:
        for _, one in walk(verb, chosen, *span(chosen, highest)):
            done += one
            show(done.count)
            if is_interrupted():
                return done, False
    return done, True


@contextmanager
def interrupts_noticed() -> Iterator[Callable[[], bool]]:
    """Only notice the first interrupt. The second one ends the program at once; its portion is rolled back."""
    noticed = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signals are for the main thread
        yield noticed.is_set
        return

    def notice(number: int, frame: Any) -> None:
        noticed.set()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, notice) for number in INTERRUPTS}
    try:
        yield noticed.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
