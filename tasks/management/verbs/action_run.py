"""Work on an action in the process of the command, with a bar on a terminal, until it ends or is interrupted."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harbor_refresh.executions.actions.bulk import find
from harbor_refresh.executions.management.bar import bar_shown
from harbor_refresh.executions.management.output import Failed
from harbor_refresh.executions.models import Action
from harbor_refresh.tasks.operations.bulk import work

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_to_end(action: Action) -> Action:
    """Work on the action until it has ended. Ctrl-C, SIGTERM or the end of the terminal stops it after the page
    in progress."""
    with interrupts_noticed() as is_interrupted, bar_shown(action.verb, action.total) as show:

        def on_page() -> bool:
            show(find(action.pk).done)
            return is_interrupted()

        result = work(action.pk, seconds=None, on_page=on_page)
    if result is None:
        raise Failed(f"another process works on action {action.pk} at this moment, or it has ended")
    return result


@contextmanager
def interrupts_noticed() -> Iterator[Callable[[], bool]]:
    """Only notice the first interrupt. The second one ends the program at once; its page is rolled back."""
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
